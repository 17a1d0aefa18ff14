//! One session for each cluster and shard: the newest epoch has it.

use decree::v1::{self, reconcile_request::Frame};
use tonic::Code;

use crate::{
    agent::{Agent, hello},
    refusal::{assert_refusal, fact},
    running::Running,
};

fn at(epoch: i64) -> v1::Hello {
    v1::Hello {
        epoch,
        ..hello("c1")
    }
}

#[tokio::test]
async fn newer_epoch_ends_the_older_session() {
    let server = Running::start().await;
    let (mut older, _) = Agent::open_with(&server, at(1)).await;
    let (mut newer, welcome) = Agent::open_with(&server, at(2)).await;
    let refusal = older.refusal().await;
    assert_refusal(&refusal, Code::Aborted, "SESSION_SUPERSEDED");
    assert_eq!(fact(&refusal, "session_id"), Some(welcome.session_id));
    assert_eq!(
        fact(&refusal, "agent_instance"),
        Some(hello("c1").agent_instance)
    );
    assert_eq!(fact(&refusal, "epoch").as_deref(), Some("2"));
    newer.snapshot(vec![], vec![]).await;
    newer.prove_alive().await;
}

#[tokio::test]
async fn equal_epoch_ends_the_older_session() {
    let server = Running::start().await;
    let (mut older, _) = Agent::open_with(&server, at(3)).await;
    let (_newer, _) = Agent::open_with(&server, at(3)).await;
    assert_refusal(&older.refusal().await, Code::Aborted, "SESSION_SUPERSEDED");
}

#[tokio::test]
async fn older_epoch_is_refused_while_a_newer_session_lives() {
    let server = Running::start().await;
    let (mut newer, _) = Agent::open_with(&server, at(5)).await;
    let mut older = Agent::connect(&server).await;
    older.send(Frame::Hello(at(4))).await;
    let refusal = older.refusal().await;
    assert_refusal(&refusal, Code::FailedPrecondition, "EPOCH_TOO_OLD");
    assert_eq!(fact(&refusal, "newest").as_deref(), Some("5"));
    newer.snapshot(vec![], vec![]).await;
    newer.prove_alive().await;
}

#[tokio::test]
async fn shards_of_a_cluster_stand_side_by_side() {
    let server = Running::start().await;
    let shard = |name: &str| v1::Hello {
        shard: name.to_owned(),
        ..at(1)
    };
    let (mut one, _) = Agent::open_with(&server, shard("a")).await;
    let (mut two, _) = Agent::open_with(&server, shard("b")).await;
    for agent in [&mut one, &mut two] {
        agent.snapshot(vec![], vec![]).await;
        agent.prove_alive().await;
    }
}

#[tokio::test]
async fn place_is_free_again_when_its_session_has_ended() {
    let server = Running::start().await;
    let (mut first, _) = Agent::open_with(&server, at(9)).await;
    first.close();
    assert!(first.end().await.is_ok());
    let (mut second, _) = Agent::open_with(&server, at(1)).await;
    second.snapshot(vec![], vec![]).await;
    second.prove_alive().await;
}
