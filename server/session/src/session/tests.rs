//! The rules of a session in tables: its frames, its end, and its clocks.

use decree_api::v1::{event::Event, reconcile_request::Frame as Asked};
use decree_core::{Span, Timestamp};
use expect_test::expect_file;

use super::*;

mod story;

#[test]
fn sessions_answer_as_expected() {
    story::play(&expect_file!["tests/tables/session.txt"]);
}

const START: Now = Now {
    wall: Timestamp::from_seconds(1_000_000),
    monotonic: Duration::from_secs(100),
};

pub(crate) fn config() -> Config {
    Config {
        server_version: "0".into(),
        frame_bytes_max: 4 << 20,
        objects_max: 3,
        operations_in_flight_max: 10,
        bytes_max: usize::MAX,
        backoff_max: Duration::from_secs(30),
        heartbeat_interval: Duration::from_secs(5),
        drain_deadline: Duration::from_secs(20),
        reconnect_after: Duration::from_secs(1),
    }
}

pub(crate) fn request(frame: Asked) -> v1::ReconcileRequest {
    v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    }
}

pub(crate) fn hello() -> v1::ReconcileRequest {
    request(Asked::Hello(v1::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_instance: "agent-0".to_owned(),
        cluster_uid: "c1".to_owned(),
        ..v1::Hello::default()
    }))
}

pub(crate) fn begin(kind: v1::Kind) -> v1::ReconcileRequest {
    let kind = kind.into();
    request(Asked::SnapshotBegin(v1::SnapshotBegin { kind }))
}

pub(crate) fn end(kind: v1::Kind, count: i64, version: &str) -> v1::ReconcileRequest {
    request(Asked::SnapshotEnd(v1::SnapshotEnd {
        kind: kind.into(),
        resource_version: version.to_owned(),
        count,
    }))
}

fn labels() -> std::collections::HashMap<String, String> {
    [("app".to_owned(), "web".to_owned())].into()
}

/// A ReplicaSet whose status says that it has its pods.
pub(crate) fn set(name: &str, replicas: i32, version: &str) -> v1::ReplicaSet {
    v1::ReplicaSet {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: version.to_owned(),
        replicas: Some(replicas),
        selector: Some(v1::LabelSelector {
            match_labels: labels(),
            ..v1::LabelSelector::default()
        }),
        template_labels: labels(),
        status: Some(v1::ReplicaSetStatus {
            replicas,
            fully_labeled_replicas: replicas,
            terminating_replicas: Some(0),
            ..v1::ReplicaSetStatus::default()
        }),
        ..v1::ReplicaSet::default()
    }
}

/// A running pod of the ReplicaSet `web`.
pub(crate) fn pod(name: &str, version: &str) -> v1::Pod {
    v1::Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: version.to_owned(),
        labels: labels(),
        controller: Some(v1::OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            uid: "uid-web".to_owned(),
            block_owner_deletion: None,
        }),
        phase: v1::PodPhase::Running.into(),
        ..v1::Pod::default()
    }
}

fn after(seconds: u64) -> Now {
    Now {
        wall: START.wall.plus(Span::seconds(seconds.cast_signed())),
        monotonic: START.monotonic + Duration::from_secs(seconds),
    }
}

/// A session with one pod too many, whose ReplicaSet prefers that pods are asked for their costs.
fn asking_session() -> Session {
    let mut hello = hello();
    let Some(Asked::Hello(asks)) = &mut hello.frame else {
        unreachable!("it is a Hello")
    };
    asks.capabilities = vec!["costs".to_owned()];
    let session = Session::open(START, config(), "s1".to_owned(), hello);
    let mut session = session.expect("the hello is sound");
    let mut web = v1::ReplicaSet {
        replicas: Some(1),
        ..set("web", 2, "3")
    };
    web.preferences = Some(v1::Preferences {
        scale_in_cost: Some(v1::ScaleInCost {
            source: "http://:8080/busy".to_owned(),
            on_silence: v1::OnSilence::Wait.into(),
        }),
        ..v1::Preferences::default()
    });
    let objects = v1::SnapshotObjects {
        replica_sets: vec![web],
        pods: ["a", "b"].map(|name| pod(name, "4")).into(),
    };
    for frame in [
        begin(v1::Kind::ReplicaSet),
        begin(v1::Kind::Pod),
        request(Asked::SnapshotObjects(objects)),
        end(v1::Kind::ReplicaSet, 1, "5"),
        end(v1::Kind::Pod, 2, "5"),
    ] {
        session.handle_frame(START, frame);
    }
    session
}

#[test]
fn questions_for_costs_leave_before_the_batch_that_needs_the_answers() {
    let mut session = asking_session();
    let polled = |session: &mut Session, at| {
        let frames = std::iter::from_fn(|| session.poll_frame(after(at)));
        frames.filter_map(|it| it.frame).collect::<Vec<_>>()
    };
    let frames = polled(&mut session, 0);
    let Some(Frame::CostsWanted(question)) = frames.last() else {
        panic!("{frames:?}")
    };
    let uids: Vec<_> = question.pods.iter().map(|pod| &*pod.uid).collect();
    assert_eq!((question.id, uids), (1, vec!["uid-a", "uid-b"]));
    let cause = |session: &Session, at: u64| {
        let known = session.describe(after(at).wall, "default", "web");
        let cause = known.and_then(|it| it.summary?.cause);
        cause.expect("it is known").text
    };
    let due = "Deletes wait: asked 2 pods for their costs, answers due in 3s";
    assert_eq!(cause(&session, 0), due);
    let answer = |costs: &[(&str, Option<i32>)]| {
        let cost = |(pod, cost): &(&str, Option<i32>)| v1::PodCost {
            uid: format!("uid-{pod}"),
            cost: *cost,
            failure: cost.map_or_else(|| format!("{pod}: refused"), |_| String::new()),
        };
        let costs = costs.iter().map(cost).collect();
        request(Asked::Costs(v1::Costs { id: 1, costs }))
    };
    session.handle_frame(after(1), answer(&[("a", Some(5)), ("b", None)]));
    let frames = polled(&mut session, 1);
    assert!(
        !frames.iter().any(|it| matches!(it, Frame::Batches(_))),
        "{frames:?}"
    );
    let silent = "Deletes wait: 1 of 2 pods did not answer (b: refused), asked again in 1s";
    assert_eq!(cause(&session, 1), silent);
    let again = polled(&mut session, 2);
    assert!(
        matches!(&again[..], [Frame::CostsWanted(it)] if it.id == 2),
        "{again:?}"
    );
}

#[test]
fn frame_in_parts_leads_to_the_same_as_a_whole_one() {
    let change = |at: i32| v1::ReplicaSet {
        min_ready_seconds: at % 2,
        ..set("web", at % 3, &(10 + at).to_string())
    };
    let event = |at| v1::Event {
        event: Some(Event::ReplicaSetApplied(change(at))),
    };
    let events = (1..=5).map(event).collect();
    let frame = IncomingFrame::from(v1::ReconcileRequest {
        sequence: 1,
        ..request(Asked::Events(v1::Events { events }))
    });
    let (mut whole, mut parted) = (asking_session(), asking_session());
    whole.handle_frame(after(1), frame.clone());
    let mut parts = 1;
    while !parted.handle_part(after(1), &frame, &|| true) {
        assert!(parted.is_within_frame());
        parts += 1;
    }
    assert!(!parted.is_within_frame());
    assert_eq!(parts, 6, "each event, and the end");
    let heartbeat = v1::ReconcileRequest {
        sequence: 2,
        ..request(Asked::Heartbeat(v1::Heartbeat::default()))
    };
    let answers = [whole, parted].map(|mut session| {
        session.handle_frame(after(2), heartbeat.clone());
        let frames: Vec<_> = std::iter::from_fn(|| session.poll_frame(after(2))).collect();
        (frames, session.poll_end())
    });
    assert!(!answers[0].0.is_empty());
    assert_eq!(answers[0].1, None);
    assert_eq!(answers[0], answers[1]);
}
