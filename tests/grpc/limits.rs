//! The resources that a peer could exhaust, and their limits.

use decree::v1::{self, event};
use decree_server::Config;
use tests::objects::{pod, replica_set};
use tokio::io::AsyncReadExt;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

use crate::{
    access::Guarded,
    agent::{Agent, bearing, hello},
    refusal::{assert_limit, assert_refusal, has_retry},
    running::{Running, StoppedTime, soon, unhurried},
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

#[tokio::test]
async fn identity_with_many_sessions_keeps_no_other_out() {
    let mut config = unhurried();
    config.limits.sessions_max = 4;
    let guarded = Guarded::start_of(config, |_| {}).await;
    let shard = |shard: usize| v1::Hello {
        shard: shard.to_string(),
        ..hello("b")
    };
    let mut many = Vec::new();
    for number in 0..4 {
        let opened = guarded.open("agent-b", shard(number)).await;
        many.push(opened.expect("there is room"));
    }
    let mut few = Vec::new();
    for cluster in ["a", "c"] {
        let opened = guarded.open("agent-a", hello(cluster)).await;
        few.push(opened.expect("another gives way"));
        let refusal = many.pop().expect("the last one").refusal().await;
        assert_limit(&refusal, "sessions");
    }
    let again = guarded.open("agent-b", shard(3)).await;
    let refusal = again.err().expect("it holds as many as the other");
    assert_refusal(&refusal, Code::ResourceExhausted, "LIMIT_REACHED");
    for agent in few.iter_mut().chain(&mut many) {
        agent.snapshot(vec![], vec![]).await;
        agent.prove_alive().await;
    }
}

/// Watches decisions, on a separate connection.
async fn watch(
    guarded: &Guarded,
    subject: &str,
) -> Result<Streaming<v1::WatchDecisionsResponse>, Status> {
    let token = guarded.issuer.token(subject);
    let request = bearing(v1::WatchDecisionsRequest::default(), Some(&token));
    let mut client = guarded.server.inspection().await;
    let watch = client.watch_decisions(request).await?;
    Ok(watch.into_inner())
}

#[tokio::test]
async fn identity_with_many_watches_keeps_no_other_out() {
    let mut config = unhurried();
    config.limits.watchers_max = 2;
    let guarded = Guarded::start_of(config, |_| {}).await;
    let _first = watch(&guarded, "viewer-a").await.expect("there is room");
    let mut second = watch(&guarded, "viewer-a").await.expect("there is room");
    let _other = watch(&guarded, "admin").await.expect("another gives way");
    let refusal = soon(second.message()).await.expect_err("it gives way");
    assert_limit(&refusal, "watchers");
    let refusal = watch(&guarded, "viewer-a").await;
    let refusal = refusal.expect_err("it holds one as the other does");
    assert_refusal(&refusal, Code::ResourceExhausted, "LIMIT_REACHED");
}

#[tokio::test]
async fn identity_with_many_calls_takes_no_place_from_another_at_its_address() {
    let mut config = unhurried();
    config.limits.calls_max = 3;
    config.limits.peer_share = 100;
    let guarded = Guarded::start_of(config, |_| {}).await;
    let mut other = watch(&guarded, "admin").await.expect("there is room");
    let mut many = Vec::new();
    for _ in 0..6 {
        many.push(watch(&guarded, "viewer-a").await.expect("it gets a place"));
    }
    for gone in &mut many[..4] {
        let refusal = soon(gone.message()).await.expect_err("it gives way");
        assert_limit(&refusal, "calls");
    }
    let agent = guarded.open("agent-a", hello("a")).await;
    let mut agent = agent.expect("sessions are no such calls");
    let set = replica_set("web").replicas(1).build();
    agent.snapshot(vec![set], vec![]).await;
    agent.batches().await;
    let decision = soon(other.message()).await.expect("it stays");
    assert!(decision.is_some());
}

#[tokio::test]
async fn objects_beyond_the_limit_end_the_session() {
    let server = Running::start_within(|limits| limits.objects_max = 3).await;
    let mut agent = Agent::open_on(&server, "c1", vec![replica_set("web").build()], vec![]).await;
    for name in ["a", "b", "c"] {
        let event = event::Event::PodApplied(pod(name, "web").build());
        agent.event(event).await;
    }
    assert_limit(&agent.refusal().await, "objects");
}

#[tokio::test]
async fn objects_of_an_open_list_count() {
    let server = Running::start_within(|limits| limits.objects_max = 10).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.begin_snapshot(v1::Kind::Pod).await;
    let pods = (0..11).map(|n| pod(&format!("p{n}"), "web").build());
    agent.list(vec![], pods.collect()).await;
    assert_limit(&agent.refusal().await, "objects");
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
async fn session_that_grows_beyond_the_memory_of_all_waits_for_the_largest_to_end() {
    let mut config = unhurried();
    // Some 2,700 of these pods fit, and neither session alone exceeds the limit.
    config.limits.memory_max = 2_000_000;
    let server = Running::start_with(config).await;
    let mut large = Agent::open_on(&server, "large", vec![], crowd(0..2_000)).await;
    large.prove_alive().await;
    let mut small = Agent::open_on(&server, "small", vec![], crowd(0..1_500)).await;
    let refusal = large.refusal().await;
    assert_limit(&refusal, "memory");
    small.prove_alive().await;
}

#[tokio::test]
async fn connection_that_never_speaks_is_closed() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let mut stream = server.socket().await;
    // The server sends its settings first, and waits from then on.
    soon(stream.read_u8()).await.expect("a greeting");
    time.pass(Config::embedded().hello_deadline).await;
    soon(stream.read_to_end(&mut Vec::new()))
        .await
        .expect("it is closed in order");
}
