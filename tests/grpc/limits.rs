//! The resources that a peer could exhaust, and their limits.

use std::{collections::BTreeSet, net::Ipv4Addr};

use decree::v1::{
    self, decision_service_client::DecisionServiceClient, event,
    reconcile_response::Frame as Answer,
};
use tests::objects::{pod, replica_set};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt;

use crate::{
    access::Guarded,
    agent::{Agent, bearing, get_web, hello},
    refusal::{assert_limit, assert_refusal, has_retry},
    running::{Running, soon, unhurried},
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
async fn session_beyond_the_memory_of_all_is_ended_and_not_an_older_one_of_its_owner() {
    let mut config = unhurried();
    // Some 2,700 of these pods fit, and neither session alone exceeds the limit.
    config.limits.memory_max = 2_000_000;
    let server = Running::start_with(config).await;
    let mut older = Agent::open_on(&server, "older", vec![], crowd(0..2_000)).await;
    older.prove_alive().await;
    let mut newer = Agent::open_on(&server, "newer", vec![], crowd(0..1_500)).await;
    assert_limit(&newer.refusal().await, "memory");
    older.prove_alive_by("still-alive").await;
}

/// Opens a session as an agent at one of the addresses of this machine, and fills it with this number of pods.
async fn filled_at(
    guarded: &Guarded,
    (subject, cluster, host): (&str, &str, u8),
    pods: usize,
) -> Agent {
    let endpoint = Channel::from_shared(format!("http://{}", guarded.server.addresses.grpc));
    let address = Ipv4Addr::new(127, 0, 0, host).into();
    let endpoint = endpoint.expect("a valid URL").local_address(Some(address));
    let channel = soon(endpoint.connect()).await.expect("the server listens");
    let token = guarded.issuer.token(subject);
    let agent = Agent::stream(DecisionServiceClient::new(channel), Some(&token)).await;
    let (mut agent, _) = agent.expect("the stream opens").greet(hello(cluster)).await;
    agent.snapshot(vec![], crowd(0..pods)).await;
    agent.prove_alive().await;
    agent
}

#[tokio::test]
async fn identity_at_three_addresses_gives_way_before_one_that_holds_less() {
    let mut config = unhurried();
    // Some 2,700 of these pods fit.
    config.limits.memory_max = 2_000_000;
    let guarded = Guarded::start_of(config, |_| {}).await;
    let mut many = Vec::new();
    for (cluster, host, pods) in [("b", 2, 700), ("b-2", 3, 600), ("b-3", 4, 600)] {
        many.push(filled_at(&guarded, ("agent-b", cluster, host), pods).await);
    }
    // It waits until the other identity has given back.
    let mut victim = filled_at(&guarded, ("agent-a", "a", 1), 1_200).await;
    assert_limit(&many[2].refusal().await, "memory");
    many[0].prove_alive_by("still-alive").await;
    victim.prove_alive_by("still-alive").await;
}

/// A ReplicaSet with a selector that takes some 280 KB of memory.
fn huge(number: usize) -> v1::ReplicaSet {
    let mut set = replica_set(&format!("huge-{number}")).build();
    let requirement = v1::LabelSelectorRequirement {
        key: "other".to_owned(),
        operator: "NotIn".to_owned(),
        values: (0..4_000).map(|value| format!("v{value}")).collect(),
    };
    let selector = set.selector.get_or_insert_default();
    selector.match_expressions.push(requirement);
    set
}

#[tokio::test]
async fn replica_sets_with_huge_selectors_leave_the_others_of_their_cluster_alone() {
    let server = Running::start_within(|limits| limits.session_memory_max = 3 << 20).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    for kind in [v1::Kind::Pod, v1::Kind::ReplicaSet] {
        agent.begin_snapshot(kind).await;
    }
    agent.end_snapshot(v1::Kind::Pod, "100", 0).await;
    let web = replica_set("web").replicas(1).build();
    agent.list(vec![web], vec![]).await;
    for number in 0..200 {
        agent.list(vec![huge(number)], vec![]).await;
    }
    agent.end_snapshot(v1::Kind::ReplicaSet, "100", 201).await;
    // The agent is told which ones, before anything is decided.
    let mut told = BTreeSet::new();
    let batches = loop {
        match agent.next().await {
            Answer::Rejection(rejection) => {
                for one in rejection.others.iter().chain([&rejection]) {
                    let violation = &one.violations[0];
                    let fault = (violation.reason.as_str(), violation.field.as_str());
                    assert_eq!(fault, ("QUARANTINED", "object"));
                    let object = one.object.clone().expect("its name");
                    assert!(told.insert(object.name), "each is told once");
                }
            }
            Answer::Batches(batches) => break batches.batches,
            other => panic!("{other:?}"),
        }
    };
    let of = |batch: &v1::Batch| batch.replica_set.clone().map(|set| set.name);
    assert_eq!(
        batches.iter().map(of).collect::<Vec<_>>(),
        [Some("web".to_owned())]
    );
    assert!((180..200).contains(&told.len()), "{}", told.len());
    let beyond = server.metric("decree_objects_beyond_memory").await;
    assert_eq!(beyond as usize, told.len());
    let name = told.pop_first().expect("one of them");
    let request = v1::GetReplicaSetRequest {
        name: name.clone(),
        ..get_web("c1")
    };
    let shown = async || {
        let answer = server
            .inspection()
            .await
            .get_replica_set(request.clone())
            .await;
        let summary = answer.expect("it is known").into_inner().summary;
        summary.expect("its state")
    };
    let summary = shown().await;
    assert_eq!(summary.state(), v1::ReplicaSetState::Quarantined);
    let cause = summary.cause.expect("a cause").text;
    assert!(cause.starts_with("Quarantined: object: takes "), "{cause}");
    // It comes back when it shrinks.
    let small = v1::ReplicaSet {
        resource_version: "101".to_owned(),
        ..replica_set(&name).replicas(1).build()
    };
    agent.event(event::Event::ReplicaSetApplied(small)).await;
    assert_eq!(of(&agent.batch().await), Some(name));
    assert_eq!(shown().await.state(), v1::ReplicaSetState::Acting);
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
