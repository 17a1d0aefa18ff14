//! SIGTERM: everyone is told, what is in flight may finish, and what is left is cut off.

use std::time::Duration;

use decree::v1::{self, reconcile_response::Frame as Answer};
use decree_server::Config;
use tests::objects::{pod, replica_set};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    agent::Agent,
    refusal::{assert_refusal, has_retry},
    running::{Running, soon, unhurried},
};

async fn told(agent: &mut Agent) -> v1::Drain {
    loop {
        if let Answer::Drain(drain) = agent.next().await {
            return drain;
        }
    }
}

#[tokio::test]
async fn session_with_nothing_in_flight_ends_at_once() {
    let mut server = Running::start().await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    server.begin_stop();
    let drain = told(&mut agent).await;
    assert!(drain.deadline.is_some());
    assert_eq!(drain.reconnect_after.expect("how long").seconds, 1);
    let refusal = agent.refusal().await;
    assert_refusal(&refusal, Code::Unavailable, "SERVER_DRAINING");
    assert!(has_retry(&refusal));
    server.ended().await;
}

#[tokio::test]
async fn session_with_a_batch_in_flight_is_waited_for_and_gets_no_more_work() {
    let mut server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batch = agent.batch().await;
    server.begin_stop();
    told(&mut agent).await;
    let Some(v1::batch::Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    let created = pod(&create.names[0], "web").version(101).build();
    agent.created(&batch, vec![created]).await;
    // The next thing said would be the status batch; during a drain it is the end.
    let end = loop {
        match soon(agent.next_message()).await {
            Ok(Some(Answer::Heartbeat(_))) => {}
            Ok(other) => panic!("no more work: {other:?}"),
            Err(status) => break status,
        }
    };
    assert_refusal(&end, Code::Unavailable, "SERVER_DRAINING");
    server.ended().await;
}

#[tokio::test]
async fn session_that_does_not_finish_is_cut_off_at_the_deadline() {
    let mut server = Running::start_with(Config {
        drain_deadline: Duration::from_millis(100),
        ..unhurried()
    })
    .await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    agent.batch().await;
    server.begin_stop();
    assert_refusal(&agent.refusal().await, Code::Unavailable, "SERVER_DRAINING");
    server.ended().await;
}

#[tokio::test]
async fn stream_that_has_not_said_hello_ends_at_once() {
    let mut server = Running::start().await;
    let mut agent = Agent::connect(&server).await;
    server.begin_stop();
    assert_refusal(&agent.refusal().await, Code::Unavailable, "SERVER_DRAINING");
    server.ended().await;
}

#[tokio::test]
async fn open_watches_do_not_hold_the_server() {
    let mut server = Running::start().await;
    let mut watch = server
        .inspection()
        .await
        .watch_decisions(v1::WatchDecisionsRequest::default())
        .await
        .expect("open")
        .into_inner();
    let service = String::new();
    let mut health = HealthClient::new(server.channel().await);
    let mut states = health
        .watch(HealthCheckRequest { service })
        .await
        .expect("open")
        .into_inner();
    let first = soon(states.message())
        .await
        .expect("open")
        .expect("a state");
    assert_eq!(first.status(), ServingStatus::Serving);
    server.begin_stop();
    let second = soon(states.message())
        .await
        .expect("open")
        .expect("a state");
    assert_eq!(second.status(), ServingStatus::NotServing);
    let refusal = soon(watch.message()).await.expect_err("the watch ends");
    assert_refusal(&refusal, Code::Unavailable, "SERVER_DRAINING");
    server.ended().await;
}

#[tokio::test]
async fn draining_server_says_so_and_begins_nothing() {
    let mut server = Running::start().await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    let batch = agent.batch().await;
    let mut decisions = server.decisions().await;
    let mut inspection = server.inspection().await;
    let mut health = HealthClient::new(server.channel().await);
    server.begin_stop();
    told(&mut agent).await;
    assert_eq!(
        server.admin("/readyz").await,
        (503, "draining\n".to_owned())
    );
    assert_eq!(server.admin("/livez").await.0, 200);
    let state = health
        .check(HealthCheckRequest::default())
        .await
        .expect("answered");
    assert_eq!(state.into_inner().status(), ServingStatus::NotServing);
    let replica_set = Some(replica_set("web").build());
    let request = v1::DecideRequest {
        replica_set,
        ..v1::DecideRequest::default()
    };
    let refusal = decisions.decide(request).await.expect_err("nothing begins");
    assert_refusal(&refusal, Code::Unavailable, "SERVER_DRAINING");
    assert!(has_retry(&refusal));
    let streamed = decisions
        .reconcile(tokio_stream::empty())
        .await
        .expect_err("nothing begins");
    assert_refusal(&streamed, Code::Unavailable, "SERVER_DRAINING");
    let sessions = inspection
        .list_sessions(v1::ListSessionsRequest {})
        .await
        .expect("still shown");
    assert_eq!(sessions.into_inner().sessions.len(), 1);
    let Some(v1::batch::Action::Create(create)) = &batch.action else {
        panic!("{batch:?}")
    };
    let created = pod(&create.names[0], "web").version(101).build();
    agent.created(&batch, vec![created]).await;
    agent.refusal().await;
    server.ended().await;
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_server() {
    let mut server = Running::start().await;
    let _idle = server.channel().await;
    let _silent = tokio::net::TcpStream::connect(server.tcp())
        .await
        .expect("it listens");
    server.begin_stop();
    server.ended().await;
}
