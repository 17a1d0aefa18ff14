//! How a session begins.

use decree::v1::{self, reconcile_request::Frame};
use decree_server::Config;
use tonic::Code;

use crate::{
    agent::{Agent, hello},
    refusal::{assert_fits_headers, assert_refusal, fact, fields, preconditions},
    running::{Running, StoppedTime, unhurried},
};

/// Says hello and returns how it is refused.
async fn refused(change: impl FnOnce(&mut v1::Hello)) -> tonic::Status {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    let mut hello = hello("c1");
    change(&mut hello);
    agent.send(Frame::Hello(hello)).await;
    agent.refusal().await
}

#[tokio::test]
async fn hello_is_answered_with_welcome() {
    let server = Running::start_with(Config::embedded()).await;
    let (_agent, welcome) = Agent::open(&server, "c1").await;
    assert_eq!(welcome.protocol, 1);
    assert!(!welcome.session_id.is_empty());
    let limits = welcome.limits.expect("limits");
    assert_eq!(limits.max_frame_bytes, 4 << 20);
    assert_eq!(limits.max_operations_in_flight, 10_000);
    assert_eq!(limits.max_objects, 1_000_000);
    assert_eq!(welcome.heartbeat_interval.expect("an interval").seconds, 5);
}

#[tokio::test]
async fn sessions_have_ids_of_their_own() {
    let server = Running::start().await;
    let (_one, first) = Agent::open(&server, "c1").await;
    let (_two, second) = Agent::open(&server, "c2").await;
    assert_ne!(first.session_id, second.session_id);
}

#[tokio::test]
async fn first_frame_must_be_hello() {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    agent.send(Frame::Heartbeat(v1::Heartbeat::default())).await;
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::FailedPrecondition, "HELLO_EXPECTED");
    assert_eq!(preconditions(&refusal), ["session"]);
}

#[tokio::test]
async fn second_hello_ends_the_session() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.send(Frame::Hello(hello("c1"))).await;
    assert_refusal(
        &agent.refusal().await,
        Code::FailedPrecondition,
        "HELLO_REPEATED",
    );
}

#[tokio::test]
async fn stream_without_hello_ends() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let mut agent = Agent::connect(&server).await;
    time.pass(Config::embedded().hello_deadline).await;
    assert_refusal(
        &agent.refusal().await,
        Code::DeadlineExceeded,
        "HELLO_TIMEOUT",
    );
}

#[tokio::test]
async fn protocol_that_is_not_spoken_is_refused() {
    let refusal = refused(|hello| (hello.protocol_min, hello.protocol_max) = (2, 3)).await;
    assert_refusal(&refusal, Code::FailedPrecondition, "PROTOCOL_UNSUPPORTED");
    assert_eq!(fact(&refusal, "supported").as_deref(), Some("1"));
}

#[tokio::test]
async fn protocol_range_that_contains_ours_is_accepted() {
    let server = Running::start().await;
    let wide = v1::Hello {
        protocol_max: 9,
        ..hello("c1")
    };
    let (_agent, welcome) = Agent::open_with(&server, wide).await;
    assert_eq!(welcome.protocol, 1);
}

#[tokio::test]
async fn capabilities_that_are_not_known_are_refused_by_name() {
    let refusal = refused(|hello| hello.capabilities = vec!["warp".into(), "time".into()]).await;
    assert_refusal(&refusal, Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED");
    assert_eq!(
        preconditions(&refusal),
        ["capability \"warp\"", "capability \"time\""]
    );
}

#[tokio::test]
async fn hello_of_any_size_has_a_small_answer() {
    let many = (0..400_000).map(|number| format!("c{number:06}"));
    let refusal = refused(|hello| hello.capabilities = many.collect()).await;
    assert_refusal(&refusal, Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED");
    let named = preconditions(&refusal);
    assert_eq!(
        named.first().map(String::as_str),
        Some("capability \"c000000\"")
    );
    let omitted = (1_001 - named.len()).to_string();
    assert_eq!(fact(&refusal, "omitted"), Some(omitted));
    assert_fits_headers(&refusal);

    let refusal = refused(|hello| hello.capabilities = vec!["\u{e9}".repeat(2_000_000)]).await;
    assert_refusal(&refusal, Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED");
    assert_fits_headers(&refusal);
}

#[tokio::test]
async fn mode_that_is_not_known_is_refused() {
    let refusal = refused(|hello| hello.mode = 77).await;
    assert_refusal(&refusal, Code::FailedPrecondition, "CAPABILITY_UNSUPPORTED");
}

#[tokio::test]
async fn fields_of_hello_out_of_range_are_all_named() {
    let refusal = refused(|hello| {
        hello.protocol_min = 0;
        hello.agent_instance = String::new();
        hello.cluster_uid = "c\n1".into();
        hello.cluster_name = "north\u{7}".into();
        hello.shard = "s".repeat(129);
        hello.epoch = -1;
        hello.options = Some(v1::Options {
            burst_replicas: Some(0),
            slow_start_initial: Some(501),
            ..v1::Options::default()
        });
    })
    .await;
    assert_refusal(&refusal, Code::InvalidArgument, "INVALID_FIELD");
    let named: Vec<_> = fields(&refusal)
        .into_iter()
        .map(|(field, _)| field)
        .collect();
    assert_eq!(
        named,
        [
            "agent_instance",
            "cluster_name",
            "cluster_uid",
            "epoch",
            "options.burst_replicas",
            "options.slow_start_initial",
            "protocol_min",
            "shard",
        ]
    );
}

#[tokio::test]
async fn burst_that_does_not_fit_a_frame_is_refused() {
    let mut config = unhurried();
    config.limits.frame_bytes_max = 512 << 10;
    let server = Running::start_with(config).await;
    let mut agent = Agent::connect(&server).await;
    let options = v1::Options {
        burst_replicas: Some(5_000),
        ..v1::Options::default()
    };
    agent
        .send(Frame::Hello(v1::Hello {
            options: Some(options),
            ..hello("c1")
        }))
        .await;
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::FailedPrecondition, "BURST_UNSUPPORTED");
    assert_eq!(fact(&refusal, "max").as_deref(), Some("650"));
}

#[tokio::test]
async fn frame_number_that_leaves_a_gap_aborts() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent
        .send_as(3, Some(Frame::Heartbeat(v1::Heartbeat::default())))
        .await;
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::Aborted, "SEQUENCE_GAP");
    assert_eq!(fact(&refusal, "expected").as_deref(), Some("2"));
    assert_eq!(fact(&refusal, "got").as_deref(), Some("3"));
}

#[tokio::test]
async fn frame_number_that_comes_twice_aborts() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent
        .send_as(1, Some(Frame::Heartbeat(v1::Heartbeat::default())))
        .await;
    assert_refusal(&agent.refusal().await, Code::Aborted, "SEQUENCE_GAP");
}

#[tokio::test]
async fn frames_without_numbers_are_legal() {
    let server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    agent.send_as(0, Some(Frame::Hello(hello("c1")))).await;
    agent
        .send_as(0, Some(Frame::Heartbeat(v1::Heartbeat::default())))
        .await;
    agent.close();
    assert!(agent.end().await.is_ok());
}
