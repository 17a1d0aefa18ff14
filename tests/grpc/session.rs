//! The behavior of a session: its frames, its metrics and its end.

use std::time::Duration;

use decree_api::v1::{self, event::Event, reconcile_request::Frame};
use decree_server::Config;
use tests::objects::{events, pod, replica_set};
use tonic::{Code, Request};

use crate::{
    agent::{Agent, created_names, get_web, hello},
    refusal::assert_refusal,
    running::{Running, StoppedTime, soon},
};

#[tokio::test]
async fn welcome_states_the_limits_of_the_server() {
    let server = Running::start_with(Config::embedded()).await;
    let (_agent, welcome) = Agent::open(&server, "c1").await;
    assert_eq!(welcome.protocol, 1);
    let limits = welcome.limits.expect("limits");
    assert_eq!(limits.max_frame_bytes, 4 << 20);
    assert_eq!(limits.max_operations_in_flight, 10_000);
    assert_eq!(limits.max_objects, 4_000_000);
    assert_eq!(welcome.heartbeat_interval.expect("an interval").seconds, 5);
}

/// The client's own timer stops with the headers; the later timeout is the server's.
#[tokio::test]
async fn deadline_of_the_caller_ends_a_stream_that_never_pauses() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let heartbeats = std::iter::repeat(Frame::Heartbeat(v1::Heartbeat::default()));
    let frames = std::iter::once(Frame::Hello(hello("c1"))).chain(heartbeats);
    let unnumbered = |frame| v1::ReconcileRequest {
        sequence: 0,
        frame: Some(frame),
    };
    let mut request = Request::new(tokio_stream::iter(frames.map(unnumbered)));
    request
        .metadata_mut()
        .insert("grpc-timeout", "100m".parse().expect("a header"));
    let answers = server.decisions().await.reconcile(request).await;
    let mut answers = answers.expect("the stream opens").into_inner();
    time.pass(Duration::from_millis(100)).await;
    let refusal = loop {
        match soon(answers.message()).await {
            Ok(frame) => assert!(frame.is_some(), "the stream ends with a status"),
            Err(status) => break status,
        }
    };
    assert_refusal(&refusal, Code::DeadlineExceeded, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn view_age_of_heartbeats_is_shown() {
    let server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    let view_age = Some(prost_types::Duration {
        seconds: 3,
        nanos: 500_000_000,
    });
    agent
        .send(Frame::Heartbeat(v1::Heartbeat {
            last_sequence: 1,
            view_age,
        }))
        .await;
    agent
        .snapshot(vec![replica_set("web").replicas(1).build()], vec![])
        .await;
    agent.batch().await;
    let gauge = server
        .metric("decree_view_age_seconds{cluster=\"c1\",cluster_uid=\"c1\",shard=\"\"}")
        .await;
    assert!((gauge - 3.5).abs() < 1e-9, "{gauge}");
}

#[tokio::test]
async fn metrics_count_what_a_session_does() {
    let server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batch = agent.batch().await;
    let created = pod(&created_names(&batch)[0], "web").version(101).build();
    agent.created(&batch, vec![created]).await;
    agent.batch().await;
    for (series, count) in [
        (
            "decree_decisions_total{op=\"create\",reason=\"RULE_TOO_FEW_REPLICAS\"}",
            1.0,
        ),
        (
            "decree_operations_total{op=\"create\",result=\"done\"}",
            1.0,
        ),
        ("decree_sessions", 1.0),
        ("decree_panics_total", 0.0),
    ] {
        let found = server.metric(series).await;
        assert!((found - count).abs() < f64::EPSILON, "{series}: {found}");
    }
}

/// Each change counts all pods anew, so the frame takes minutes. A question finds a state that only the middle of the frame has.
#[tokio::test]
async fn session_answers_and_ends_in_the_middle_of_a_frame() {
    const PODS: i32 = 4_000;
    const CHANGES: u64 = 20_000;
    let server = Running::start().await;
    let at = |epoch| v1::Hello {
        epoch,
        ..hello("c1")
    };
    let web = |replicas, version: u64| v1::ReplicaSet {
        min_ready_seconds: i32::from(version.is_multiple_of(2)),
        resource_version: version.to_string(),
        ..replica_set("web").replicas(replicas).ready(PODS).build()
    };
    let pods = (0..PODS).map(|number| pod(&format!("web-{number}"), "web").build());
    let (mut older, _) = Agent::open_with(&server, at(1)).await;
    older.snapshot(vec![web(PODS, 10)], pods.collect()).await;
    let changes = (0..CHANGES).map(|change| web(PODS - 1, 101 + change));
    let changes = changes.chain([web(PODS, 101 + CHANGES)]);
    let frame = events(changes.map(Event::ReplicaSetApplied));
    older.send(frame).await;

    let mut inspection = server.inspection().await;
    let is_within = async {
        loop {
            let found = inspection.get_replica_set(get_web("c1")).await;
            let summary = found.ok().and_then(|it| it.into_inner().summary);
            if summary.is_some_and(|it| it.replicas == PODS - 1) {
                break;
            }
        }
    };
    soon(is_within).await;
    let (_newer, _) = Agent::open_with(&server, at(2)).await;
    let end = older.refusal().await;
    assert_refusal(&end, Code::Aborted, "SESSION_SUPERSEDED");
}
