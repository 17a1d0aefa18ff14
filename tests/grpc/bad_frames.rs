//! Faults of a frame: its session ends, and the status names the field.

use decree::v1::{self, event, reconcile_request::Frame};
use tonic::Code;

use crate::{
    agent::Agent,
    refusal::{assert_field, assert_refusal},
    running::Running,
};

/// A frame, its named field, and the reason.
type Row = (Option<Frame>, &'static str, &'static str);

fn event(event: Option<event::Event>) -> Option<Frame> {
    Some(Frame::Events(v1::Events {
        events: vec![v1::Event { event }],
    }))
}

fn deletion(kind: i32) -> Option<Frame> {
    event(Some(event::Event::Deleted(v1::Deleted {
        kind,
        ..v1::Deleted::default()
    })))
}

/// The rows, each with a frame in a session with an open list of pods.
fn rows() -> [Row; 11] {
    let kind = v1::Kind::Pod.into();
    let bookmark = event::Event::Bookmark(v1::Bookmark {
        kind,
        resource_version: String::new(),
    });
    let outcome = v1::Outcome {
        batch_id: 1,
        ..v1::Outcome::default()
    };
    let outcomes = |outcomes| Some(Frame::Outcomes(v1::Outcomes { outcomes }));
    let end = v1::SnapshotEnd {
        kind,
        resource_version: "007".to_owned(),
        count: 0,
    };
    [
        (None, "frame", "REQUIRED"),
        (
            Some(Frame::Events(v1::Events::default())),
            "events.events",
            "REQUIRED",
        ),
        (event(None), "events.events[0].event", "REQUIRED"),
        (deletion(0), "events.events[0].deleted.kind", "REQUIRED"),
        (
            deletion(77),
            "events.events[0].deleted.kind",
            "UNKNOWN_VALUE",
        ),
        (
            deletion(kind),
            "events.events[0].deleted.object",
            "REQUIRED",
        ),
        (
            event(Some(bookmark)),
            "events.events[0].bookmark.resource_version",
            "REQUIRED",
        ),
        (outcomes(vec![]), "outcomes.outcomes", "REQUIRED"),
        (
            outcomes(vec![outcome]),
            "outcomes.outcomes[0].outcome",
            "REQUIRED",
        ),
        (
            Some(Frame::SnapshotBegin(v1::SnapshotBegin::default())),
            "snapshot_begin.kind",
            "REQUIRED",
        ),
        (
            Some(Frame::SnapshotEnd(end)),
            "snapshot_end.resource_version",
            "INVALID_VERSION",
        ),
    ]
}

#[tokio::test]
async fn invalid_frame_ends_its_session_names_its_field_and_harms_no_other() {
    let server = Running::start().await;
    for (frame, field, reason) in rows() {
        let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
        agent.begin_snapshot(v1::Kind::Pod).await;
        agent.send_as(0, frame).await;
        let refusal = agent.refusal().await;
        assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
        assert_field(&refusal, field, reason);
    }
    let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
    agent.prove_alive().await;
    let refused = server
        .metric("decree_session_ends_total{reason=\"INVALID_FIELD\"}")
        .await;
    assert!((refused - 11.0).abs() < f64::EPSILON, "{refused}");
}
