//! What is wrong with a frame itself: its session ends, and says which field it was.

use decree::v1::{self, event, reconcile_request::Frame};
use tonic::Code;

use crate::{
    agent::Agent,
    refusal::{assert_refusal, fields},
    running::Running,
};

/// Sends a frame in a session that is complete, and returns how the session ends.
async fn refused(frame: Option<Frame>) -> tonic::Status {
    let server = Running::start().await;
    let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
    agent.send_as(0, frame).await;
    agent.refusal().await
}

async fn assert_named(frame: Option<Frame>, field: &str, reason: &str) {
    let refusal = refused(frame).await;
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(fields(&refusal), [(field.to_owned(), reason.to_owned())]);
}

fn events(event: Option<event::Event>) -> Option<Frame> {
    Some(Frame::Events(v1::Events {
        events: vec![v1::Event {
            event,
            ..v1::Event::default()
        }],
    }))
}

#[tokio::test]
async fn frame_without_content_is_named() {
    assert_named(None, "frame", "REQUIRED").await;
}

#[tokio::test]
async fn events_without_an_event_are_named() {
    let empty = Frame::Events(v1::Events::default());
    assert_named(Some(empty), "events.events", "REQUIRED").await;
}

#[tokio::test]
async fn event_without_content_is_named() {
    assert_named(events(None), "events.events[0].event", "REQUIRED").await;
}

#[tokio::test]
async fn deletion_without_a_kind_is_named() {
    let deleted = event::Event::Deleted(v1::Deleted::default());
    assert_named(
        events(Some(deleted)),
        "events.events[0].deleted.kind",
        "REQUIRED",
    )
    .await;
}

#[tokio::test]
async fn deletion_of_an_unknown_kind_is_named() {
    let deleted = event::Event::Deleted(v1::Deleted {
        kind: 77,
        ..v1::Deleted::default()
    });
    assert_named(
        events(Some(deleted)),
        "events.events[0].deleted.kind",
        "UNKNOWN_VALUE",
    )
    .await;
}

#[tokio::test]
async fn deletion_of_nothing_is_named() {
    let kind = v1::Kind::Pod.into();
    let deleted = event::Event::Deleted(v1::Deleted {
        kind,
        ..v1::Deleted::default()
    });
    assert_named(
        events(Some(deleted)),
        "events.events[0].deleted.object",
        "REQUIRED",
    )
    .await;
}

#[tokio::test]
async fn bookmark_without_a_version_is_named() {
    let kind = v1::Kind::Pod.into();
    let bookmark = event::Event::Bookmark(v1::Bookmark {
        kind,
        resource_version: String::new(),
    });
    let field = "events.events[0].bookmark.resource_version";
    assert_named(events(Some(bookmark)), field, "REQUIRED").await;
}

#[tokio::test]
async fn outcomes_without_an_outcome_are_named() {
    let empty = Frame::Outcomes(v1::Outcomes::default());
    assert_named(Some(empty), "outcomes.outcomes", "REQUIRED").await;
}

#[tokio::test]
async fn outcome_without_content_is_named() {
    let outcomes = vec![v1::Outcome {
        batch_id: 1,
        operation: 0,
        outcome: None,
        ..v1::Outcome::default()
    }];
    let frame = Frame::Outcomes(v1::Outcomes { outcomes });
    assert_named(Some(frame), "outcomes.outcomes[0].outcome", "REQUIRED").await;
}

#[tokio::test]
async fn outcomes_of_unknown_batches_are_ignored() {
    let server = Running::start().await;
    let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
    let done = v1::outcome::Outcome::Done(v1::Done::default());
    let outcome = v1::Outcome {
        batch_id: 999,
        operation: u32::MAX,
        outcome: Some(done),
        ..v1::Outcome::default()
    };
    agent
        .send(Frame::Outcomes(v1::Outcomes {
            outcomes: vec![outcome],
        }))
        .await;
    agent.prove_alive().await;
}

#[tokio::test]
async fn refused_session_does_not_harm_the_next() {
    let server = Running::start().await;
    for _ in 0..3 {
        let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
        agent.send(Frame::Events(v1::Events::default())).await;
        agent.refusal().await;
    }
    let mut agent = Agent::open_on(&server, "c1", vec![], vec![]).await;
    agent.prove_alive().await;
    let refused = server
        .metric("decree_session_ends_total{reason=\"INVALID_FIELD\"}")
        .await;
    assert!((refused - 3.0).abs() < f64::EPSILON, "{refused}");
}
