//! Frames of an agent with one fault, and the rule that they break.

use decree_api::v1::{
    Deleted, Done, Event, Events, LabelSelector, ObjectRef, Outcomes, OwnerReference, PodPhase,
    SnapshotBegin, SnapshotEnd, SnapshotObjects, done, event,
};
use tonic::{
    body::Body,
    codec::{DecodeBuf, Decoder},
};

use super::*;
use crate::{
    opening::sum_up,
    score::{GONE, LABELS, LAG, Notes, RULES, VERSIONS},
};

/// The stream of an agent whose frames a test takes itself.
struct NoFrames;

impl Decoder for NoFrames {
    type Item = ReconcileRequest;
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<ReconcileRequest>, Status> {
        Ok(None)
    }
}

/// A pod of the ReplicaSet, which selects it.
fn pod(uid: &str, version: &str) -> Pod {
    Pod {
        namespace: "default".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        resource_version: version.to_owned(),
        labels: [("app".to_owned(), "web".to_owned())].into(),
        controller: Some(OwnerReference {
            name: "web".to_owned(),
            uid: "web".to_owned(),
            ..OwnerReference::default()
        }),
        ..Pod::default()
    }
}

fn replica_set() -> ReplicaSet {
    ReplicaSet {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "web".to_owned(),
        resource_version: "1".to_owned(),
        selector: Some(LabelSelector {
            match_labels: pod("", "").labels,
            ..LabelSelector::default()
        }),
        template_labels: pod("", "").labels,
        ..ReplicaSet::default()
    }
}

fn list(kind: Kind, version: &str, objects: SnapshotObjects) -> Vec<Frame> {
    let count = objects.pods.len() + objects.replica_sets.len();
    let kind = kind.into();
    vec![
        Frame::SnapshotBegin(SnapshotBegin { kind }),
        Frame::SnapshotObjects(objects),
        Frame::SnapshotEnd(SnapshotEnd {
            kind,
            resource_version: version.to_owned(),
            count: i64::try_from(count).expect("they are few"),
        }),
    ]
}

fn pods(version: &str, pods: &[&Pod]) -> Vec<Frame> {
    let objects = SnapshotObjects {
        pods: pods.iter().copied().cloned().collect(),
        ..SnapshotObjects::default()
    };
    list(Kind::Pod, version, objects)
}

fn created(pod: &Pod) -> Vec<Frame> {
    let done = Done {
        resource_version: pod.resource_version.clone(),
        object: Some(done::Object::Pod(pod.clone())),
        ..Done::default()
    };
    let outcomes = vec![Outcome {
        outcome: Some(outcome::Outcome::Done(done)),
        ..Outcome::default()
    }];
    vec![Frame::Outcomes(Outcomes { outcomes })]
}

fn changed(event: event::Event) -> Vec<Frame> {
    let events = vec![Event { event: Some(event) }];
    vec![Frame::Events(Events { events })]
}

fn deleted(uid: &str, version: &str) -> Vec<Frame> {
    changed(event::Event::Deleted(Deleted {
        kind: Kind::Pod.into(),
        object: Some(ObjectRef {
            uid: uid.to_owned(),
            ..ObjectRef::default()
        }),
        resource_version: version.to_owned(),
    }))
}

/// The rules that an agent breaks with these frames after its first lists, which have version 10, the ReplicaSet and the pod `b`.
fn broken(frames: &[Vec<Frame>]) -> Vec<&'static str> {
    let (answers, _answered) = mpsc::channel(1);
    let frames_of = Streaming::new_empty(NoFrames, Body::empty());
    let mut peer = ConnectedAgent::new(frames_of, answers);
    let sets = SnapshotObjects {
        replica_sets: vec![replica_set()],
        ..SnapshotObjects::default()
    };
    let first = [
        list(Kind::ReplicaSet, "10", sets),
        pods("10", &[&pod("b", "5")]),
    ];
    for frame in first.iter().chain(frames).flatten() {
        peer.take(frame);
    }
    let mut notes = Notes::default();
    sum_up(&peer, &mut notes);
    let rules = RULES.iter().map(|rule| rule.words);
    rules.filter(|rule| notes.is_broken(rule)).collect()
}

/// A fault, the frames that have it, and the rules that they break.
type Row<'a> = (&'a str, &'a [Vec<Frame>], &'a [&'a str]);

#[test]
fn fault_breaks_the_rule_that_names_it_and_no_other() {
    let [a, b] = [pod("a", "11"), pod("b", "5")];
    let unlabelled = Pod {
        labels: [].into(),
        ..a.clone()
    };
    let running = Pod {
        phase: PodPhase::Running.into(),
        ..b.clone()
    };
    let applied = |pod: Pod| changed(event::Event::PodApplied(pod));
    let rows: [Row<'_>; _] = [
        ("no fault", &[created(&a), pods("12", &[&a, &b])], &[]),
        (
            "a list from before a create",
            &[created(&a), pods("10", &[&b])],
            &[],
        ),
        ("a version that stays", &[applied(running)], &[VERSIONS]),
        (
            "a create at the version of the list",
            &[created(&pod("a", "10"))],
            &[VERSIONS],
        ),
        (
            "a list without labels",
            &[created(&a), pods("12", &[&unlabelled, &b])],
            &[LABELS],
        ),
        (
            "a list that lags behind a create",
            &[created(&a), pods("12", &[&b])],
            &[LAG],
        ),
        (
            "a list with a deleted pod",
            &[deleted("b", "11"), pods("12", &[&b])],
            &[GONE],
        ),
        (
            "a change of a deleted pod",
            &[deleted("b", "11"), applied(pod("b", "12"))],
            &[GONE],
        ),
        (
            "lists that lag behind a deletion, too",
            &[
                created(&a),
                deleted("b", "12"),
                pods("13", &[&b]),
                pods("14", &[&a, &b]),
            ],
            &[LAG],
        ),
    ];
    for (fault, frames, rules) in rows {
        assert_eq!(broken(frames), rules, "{fault}");
    }
}
