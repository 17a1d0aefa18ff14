//! Replays recorded sessions on a real API server: the gate for every change of decisions.

use decree::{
    recording::v1::record::Step,
    v1::{
        self, batch::Action, done::Object, event::Event, outcome::Outcome,
        reconcile_request as request, reconcile_response as response,
    },
};
use server_session::recording::{Difference, EndReason, Ending};
use tests::recordings::{self, Recording};

/// The manual for an intended difference.
const MANUAL: &str = "tests/golden/recordings/README.md says what to do if that is intended";

#[test]
fn kept_recordings_replay_without_a_difference() {
    let kept = recordings::kept();
    recordings::assert_rich(kept.iter().map(|(_, bytes)| bytes.as_slice()));
    for (name, bytes) in kept {
        let (differences, summary) = recordings::replay(&bytes);
        let first = differences.first();
        assert!(first.is_none(), "{name}: {first:#?}\n{MANUAL}");
        assert_eq!(summary.ending, Ending::Marked(EndReason::Session), "{name}");
    }
}

#[test]
fn kept_recordings_hold_nothing_of_templates_and_annotations() {
    for (_, bytes) in recordings::kept() {
        recordings::assert_no_secret(&bytes);
    }
}

/// Changes one decision of a certain kind, and returns whether the decision was of this kind.
type Change = fn(&mut Action) -> bool;

const CHANGES: [(&str, Change); 5] = [
    ("create", |action| {
        let Action::Create(create) = action else {
            return false;
        };
        create.names.pop().is_some()
    }),
    ("delete", |action| {
        let Action::Delete(delete) = action else {
            return false;
        };
        delete.victims.pop().is_some()
    }),
    ("adopt", |action| {
        let Action::Claim(claim) = action else {
            return false;
        };
        claim.adopts.pop().is_some()
    }),
    ("release", |action| {
        let Action::Claim(claim) = action else {
            return false;
        };
        claim.releases.pop().is_some()
    }),
    ("status", |action| {
        let Action::WriteStatus(write) = action else {
            return false;
        };
        write.status.take().is_some()
    }),
];

#[test]
fn changed_decision_of_each_kind_is_found() {
    for (kind, change) in CHANGES {
        let mut found = 0;
        for (name, bytes) in recordings::kept() {
            let mut recording = Recording::decode(&bytes);
            let Some(changed) = change_last(&mut recording, change) else {
                continue;
            };
            let (differences, _) = recordings::replay(&recording.encode());
            let [Difference::Frame { recorded, .. }] = &differences[..] else {
                panic!(
                    "{name}: {} differences, not that of {kind}",
                    differences.len()
                );
            };
            assert_eq!(*recorded, Some(changed), "{name}: {kind}");
            found += 1;
        }
        assert!(found > 0, "no recording has a decision of kind {kind}");
    }
}

/// Changes the last decision that `change` accepts, and returns its frame.
fn change_last(recording: &mut Recording, change: Change) -> Option<v1::ReconcileResponse> {
    let steps = recording.records.iter_mut().rev();
    let mut frames = steps.filter_map(|record| match &mut record.step {
        Some(Step::Poll(poll)) => poll.frame.as_mut(),
        _ => None,
    });
    frames.find_map(|frame| {
        let Some(response::Frame::Batches(batches)) = &mut frame.frame else {
            return None;
        };
        let mut actions = batches
            .batches
            .iter_mut()
            .filter_map(|it| it.action.as_mut());
        actions.any(change).then(|| frame.clone())
    })
}

/// A field to remove from the input of a session, which then decides like a version that ignores the field.
enum Omission {
    Pods(fn(&mut v1::Pod)),
    ReplicaSets(fn(&mut v1::ReplicaSet)),
}

const OMISSIONS: [(&str, Omission); 18] = [
    ("labels", Omission::Pods(|pod| pod.labels.clear())),
    ("controller", Omission::Pods(|pod| pod.controller = None)),
    ("created", Omission::Pods(|pod| pod.created = None)),
    ("deleted", Omission::Pods(|pod| pod.deleted = None)),
    ("node", Omission::Pods(|pod| pod.node_name.clear())),
    ("phase", Omission::Pods(|pod| pod.phase = 0)),
    ("ready", Omission::Pods(|pod| pod.ready = None)),
    (
        "ready since",
        Omission::Pods(|pod| {
            if let Some(ready) = &mut pod.ready {
                ready.since = None;
            }
        }),
    ),
    (
        "deletion cost",
        Omission::Pods(|pod| pod.deletion_cost = None),
    ),
    (
        "restarts",
        Omission::Pods(|pod| pod.max_regular_restarts = 0),
    ),
    (
        "restarts of sidecars",
        Omission::Pods(|pod| pod.max_sidecar_restarts = 0),
    ),
    (
        "generation",
        Omission::ReplicaSets(|set| set.generation = 0),
    ),
    ("deletion", Omission::ReplicaSets(|set| set.deleted = None)),
    ("owner", Omission::ReplicaSets(|set| set.controller = None)),
    ("replicas", Omission::ReplicaSets(|set| set.replicas = None)),
    (
        "minReadySeconds",
        Omission::ReplicaSets(|set| set.min_ready_seconds = 0),
    ),
    ("selector", Omission::ReplicaSets(|set| set.selector = None)),
    (
        "template's labels",
        Omission::ReplicaSets(|set| set.template_labels.clear()),
    ),
];

#[test]
fn version_that_does_not_read_a_field_is_found() {
    let kept: Vec<_> = recordings::kept()
        .iter()
        .map(|(_, bytes)| Recording::decode(bytes))
        .collect();
    let missed: Vec<_> = OMISSIONS
        .iter()
        .filter(|(_, omission)| !kept.iter().any(|it| is_found(it, omission)))
        .map(|(field, _)| field)
        .collect();
    assert!(missed.is_empty(), "no recording depends on {missed:?}");
}

/// Returns whether the missing field changes a decision.
fn is_found(recording: &Recording, omission: &Omission) -> bool {
    let mut recording = recording.clone();
    for record in &mut recording.records {
        if let Some(Step::Frame(frame)) = &mut record.step {
            omit(frame, omission);
        }
    }
    let (differences, _) = recordings::replay(&recording.encode());
    differences.iter().any(is_of_decisions)
}

fn is_of_decisions(difference: &Difference) -> bool {
    let has_batches = |frame: &Option<v1::ReconcileResponse>| {
        let frame = frame.as_ref().and_then(|it| it.frame.as_ref());
        matches!(frame, Some(response::Frame::Batches(_)))
    };
    match difference {
        Difference::Frame {
            recorded, decided, ..
        } => has_batches(recorded) || has_batches(decided),
        Difference::End { .. } => false,
    }
}

fn omit(frame: &mut v1::ReconcileRequest, omission: &Omission) {
    match &mut frame.frame {
        Some(request::Frame::SnapshotObjects(list)) => {
            list.pods.iter_mut().for_each(|pod| omission.pod(pod));
            let sets = list.replica_sets.iter_mut();
            sets.for_each(|set| omission.replica_set(set));
        }
        Some(request::Frame::Events(events)) => {
            for event in &mut events.events {
                match &mut event.event {
                    Some(Event::PodApplied(pod)) => omission.pod(pod),
                    Some(Event::ReplicaSetApplied(set)) => omission.replica_set(set),
                    Some(Event::Deleted(_) | Event::Bookmark(_)) | None => {}
                }
            }
        }
        Some(request::Frame::Outcomes(outcomes)) => {
            for outcome in &mut outcomes.outcomes {
                if let Some(Outcome::Done(done)) = &mut outcome.outcome {
                    omit_from_object(done.object.as_mut(), omission);
                }
            }
        }
        Some(
            request::Frame::Hello(_)
            | request::Frame::Heartbeat(_)
            | request::Frame::SnapshotBegin(_)
            | request::Frame::SnapshotEnd(_),
        )
        | None => {}
    }
}

fn omit_from_object(object: Option<&mut Object>, omission: &Omission) {
    match object {
        Some(Object::Pod(pod)) => omission.pod(pod),
        Some(Object::ReplicaSet(set)) => omission.replica_set(set),
        Some(Object::Gone(_)) | None => {}
    }
}

impl Omission {
    fn pod(&self, pod: &mut v1::Pod) {
        if let Self::Pods(take) = self {
            take(pod);
        }
    }

    fn replica_set(&self, set: &mut v1::ReplicaSet) {
        if let Self::ReplicaSets(take) = self {
            take(set);
        }
    }
}
