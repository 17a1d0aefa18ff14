//! How a session begins, and which session of a cluster and shard is live.

use std::time::Duration;

use decree_api::v1::{
    self, batch::Action, reconcile_request::Frame, reconcile_response::Frame as Answer,
};
use decree_server::Config;
use tests::objects::replica_set;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{
    agent::{Agent, hello},
    refusal::{assert_refusal, fact, fields},
    running::{Running, StoppedTime},
};

fn changed(change: impl FnOnce(&mut v1::Hello)) -> Frame {
    let mut hello = hello("c1");
    change(&mut hello);
    Frame::Hello(hello)
}

fn burst(replicas: i32) -> Option<v1::Options> {
    Some(v1::Options {
        burst_replicas: Some(replicas),
        slow_start_initial: Some(3),
        ..v1::Options::default()
    })
}

#[tokio::test]
async fn unsupported_requests_of_a_hello_are_refused_by_name() {
    let server = Running::start_within(|limits| limits.frame_bytes_max = 512 << 10).await;
    let names = ["earlier", "later"].map(str::to_owned);
    for (hello, reason, named) in [
        (
            changed(|it| it.capabilities = names.into()),
            "CAPABILITY_UNSUPPORTED",
            "capability \"earlier\", capability \"later\"",
        ),
        (
            changed(|it| it.mode = 77),
            "CAPABILITY_UNSUPPORTED",
            "mode 77",
        ),
        (
            changed(|it| it.options = burst(5_000)),
            "BURST_UNSUPPORTED",
            "session",
        ),
    ] {
        let mut agent = Agent::connect(&server).await;
        agent.send(hello).await;
        let refusal = agent.refusal().await;
        assert_refusal(&refusal, Code::FailedPrecondition, reason);
        let failed = refusal.get_details_precondition_failure();
        let subjects = failed.expect("it goes with the code").violations;
        let subjects = subjects.into_iter().map(|it| it.subject);
        assert_eq!(
            subjects.collect::<Vec<_>>().join(", "),
            named,
            "{refusal:?}"
        );
    }
}

#[tokio::test]
async fn fields_of_a_hello_that_are_out_of_range_are_all_named() {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    let hello = changed(|it| {
        it.protocol_min = 0;
        it.agent_instance.clear();
        it.cluster_uid = "c\n1".to_owned();
        it.cluster_name = "north\u{7}".to_owned();
        it.shard = "s".repeat(129);
        it.epoch = -1;
        it.options = burst(0);
    });
    agent.send(hello).await;
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    let named = fields(&refusal).into_iter().map(|(field, _)| field);
    let expected =
        "agent_instance cluster_name cluster_uid epoch options.burst_replicas protocol_min shard";
    assert_eq!(named.collect::<Vec<_>>().join(" "), expected);
}

#[tokio::test]
async fn lists_may_precede_the_welcome() {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    // The server supports one version of this range.
    agent.send(changed(|it| it.protocol_max = 9)).await;
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![])
        .await;
    let Answer::Welcome(welcome) = agent.next().await else {
        panic!("a welcome comes first")
    };
    assert_eq!(welcome.protocol, 1);
    agent.batch().await;
}

#[tokio::test]
async fn server_waits_for_a_hello_only_so_long_and_says_what_it_has_read() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let mut silent = Agent::connect(&server).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    time.pass(Duration::from_secs(5)).await;
    assert_refusal(
        &silent.refusal().await,
        Code::DeadlineExceeded,
        "HELLO_TIMEOUT",
    );
    let Ok(Some(Answer::Heartbeat(heartbeat))) = agent.next_message().await else {
        panic!("a heartbeat is due")
    };
    assert_eq!((heartbeat.last_sequence, heartbeat.view_age), (1, None));
}

#[tokio::test]
async fn one_session_of_a_cluster_and_shard_is_live_and_its_epoch_decides_which() {
    let server = Running::start().await;
    let at = |epoch| v1::Hello {
        epoch,
        ..hello("c1")
    };
    let web = |replicas| vec![replica_set("web").replicas(replicas).build()];
    let shard = "other".to_owned();
    let (mut other, _) = Agent::open_with(&server, v1::Hello { shard, ..at(0) }).await;
    let (mut older, _) = Agent::open_with(&server, at(6)).await;

    let (mut newer, welcome) = Agent::open_with(&server, at(7)).await;
    let end = older.refusal().await;
    assert_refusal(&end, Code::Aborted, "SESSION_SUPERSEDED");
    let facts = ["session_id", "agent_instance", "epoch"].map(|key| fact(&end, key));
    let expected = [&welcome.session_id, "c1", "7"].map(|it| Some(it.to_owned()));
    assert_eq!(facts, expected);

    let mut lower = Agent::connect(&server).await;
    lower.send(Frame::Hello(at(6))).await;
    let refusal = lower.refusal().await;
    assert_refusal(&refusal, Code::FailedPrecondition, "EPOCH_TOO_OLD");
    assert_eq!(fact(&refusal, "newest").as_deref(), Some("7"));
    newer.snapshot(web(0), vec![]).await;
    newer.prove_alive().await;

    let options = burst(2);
    let (mut equal, welcome) = Agent::open_with(&server, v1::Hello { options, ..at(7) }).await;
    assert_refusal(&newer.refusal().await, Code::Aborted, "SESSION_SUPERSEDED");
    equal.snapshot(web(5), vec![]).await;
    let batch = equal.batch().await;
    let (session_id, epoch) = (welcome.session_id, 7);
    assert_eq!(batch.guard, Some(v1::Guard { session_id, epoch }));
    let Some(Action::Create(create)) = batch.action else {
        panic!("{batch:?}")
    };
    assert_eq!((create.names.len(), create.slow_start_initial), (2, 3));

    equal.close();
    equal.end().await.expect("it has closed");
    let (mut lower, _) = Agent::open_with(&server, at(6)).await;
    lower.snapshot(web(1), vec![]).await;
    lower.batch().await;
    // Nothing of this has been seen by the other shard.
    other.snapshot(web(1), vec![]).await;
    other.batch().await;
}
