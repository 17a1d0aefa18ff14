//! The resources that a peer could exhaust, and their limits.

use decree_api::v1;
use tests::objects::pod;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::{
    access::Guarded,
    agent::{Agent, hello},
    refusal::{assert_limit, assert_refusal, has_retry},
    running::{Running, unhurried},
};

#[tokio::test]
async fn sessions_beyond_the_limit_are_refused_with_a_time_to_come_back() {
    let server = Running::start_within(|limits| limits.sessions_max = 1).await;
    let (mut first, _) = Agent::open(&server, "c1").await;
    let mut second = Agent::connect(&server).await;
    second.say_hello("c2").await;
    let refusal = second.refusal().await;
    assert_limit(&refusal, "sessions");
    let quota = refusal.get_details_quota_failure().expect("which quota");
    assert_eq!(quota.violations[0].subject, "sessions");
    assert!(has_retry(&refusal));
    first.snapshot(vec![], vec![]).await;
    first.prove_alive().await;
}

/// Pods with a separate node each.
fn crowd(pods: std::ops::Range<usize>) -> Vec<v1::Pod> {
    let pod = |number| v1::Pod {
        node_name: format!("{number}-{}", "n".repeat(200)),
        ..pod(&format!("p{number}"), "web").build()
    };
    pods.map(pod).collect()
}

/// Sends pods until the server refuses.
async fn fill(agent: &mut Agent) -> Status {
    agent.begin_snapshot(v1::Kind::Pod).await;
    for frame in 0..40 {
        let pods = crowd(100 * frame..100 * (frame + 1));
        agent.list(vec![], pods).await;
    }
    agent.refusal().await
}

#[tokio::test]
async fn session_that_holds_too_many_bytes_is_ended_and_others_go_on() {
    for (session_memory_max, memory_max, limit) in [
        (1 << 20, 1 << 30, "session_memory"),
        (1 << 30, 1 << 20, "memory"),
    ] {
        let server = Running::start_within(|limits| {
            limits.session_memory_max = session_memory_max;
            limits.memory_max = memory_max;
        })
        .await;
        let mut other = Agent::open_on(&server, "c1", vec![], vec![]).await;
        let (mut agent, _) = Agent::open(&server, "c2").await;
        let refusal = fill(&mut agent).await;
        assert_limit(&refusal, limit);
        other.prove_alive().await;
    }
}

#[tokio::test]
async fn successor_inherits_the_place_of_its_session_and_a_refused_one_takes_none() {
    let mut config = unhurried();
    config.limits.sessions_max = 3;
    let guarded = Guarded::start_of(config, |_| {}).await;
    let mut many = Vec::new();
    for shard in ["1", "2"] {
        let shard = v1::Hello {
            shard: shard.to_owned(),
            ..hello("b")
        };
        many.push(guarded.open("agent-b", shard).await.expect("there is room"));
    }
    let of_epoch = |epoch| v1::Hello {
        epoch,
        ..hello("a")
    };
    // It hangs: it neither reads nor sends anything more.
    let mut first = guarded
        .open("agent-a", of_epoch(5))
        .await
        .expect("there is room");
    for bad in [
        of_epoch(4),
        of_epoch(-1),
        v1::Hello {
            protocol_max: 0,
            ..of_epoch(6)
        },
        hello("b"),
    ] {
        assert!(guarded.open("agent-a", bad).await.is_err());
    }
    let mut last = guarded
        .open("agent-a", of_epoch(6))
        .await
        .expect("the place of the first");
    assert_refusal(&first.refusal().await, Code::Aborted, "SESSION_SUPERSEDED");
    let mut last = {
        let again = guarded
            .open("agent-a", of_epoch(6))
            .await
            .expect("the same place");
        assert_refusal(&last.refusal().await, Code::Aborted, "SESSION_SUPERSEDED");
        again
    };
    for agent in many.iter_mut().chain([&mut last]) {
        agent.snapshot(vec![], vec![]).await;
        agent.prove_alive().await;
    }
}
