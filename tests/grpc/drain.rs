//! SIGTERM: all peers are told, work in flight may finish, and the rest is cut off. Agents that are stopped report theirs.

use std::time::{Duration, SystemTime};

use agent_fake::{Fault, Kind, Verb};
use decree_agent::{FakeCluster, ShellConfig};
use decree_api::v1::{self, reconcile_response::Frame as Answer};
use decree_server::Config;
use service::transport::Connector;
use tests::{
    builders::{self, brisk_cluster},
    objects::{pod, replica_set},
};
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use crate::{
    agent::{Agent, created_names},
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
async fn who_has_no_session_does_not_hold_the_server() {
    let mut server = Running::start().await;
    let _idle = server.channel().await;
    let _silent = server.socket().await;
    let mut agent = Agent::connect(&server).await;
    let all = v1::WatchDecisionsRequest::default();
    let watch = server.inspection().await.watch_decisions(all).await;
    let mut watch = watch.expect("open").into_inner();
    let mut health = HealthClient::new(server.channel().await);
    let states = health.watch(HealthCheckRequest::default()).await;
    let mut states = states.expect("open").into_inner();
    let mut next = async || {
        let state = soon(states.message()).await.expect("open");
        state.expect("a state").status()
    };
    assert_eq!(next().await, ServingStatus::Serving);
    server.begin_stop();
    assert_eq!(next().await, ServingStatus::NotServing);
    assert_refusal(&agent.refusal().await, Code::Unavailable, "SERVER_DRAINING");
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
    let drain = told(&mut agent).await;
    assert_eq!(drain.reconnect_after.expect("how long").seconds, 1);
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
        .list_sessions(v1::ListSessionsRequest::default())
        .await
        .expect("still shown");
    assert_eq!(sessions.into_inner().sessions.len(), 1);
    let created = pod(&created_names(&batch)[0], "web").version(101).build();
    agent.created(&batch, vec![created]).await;
    assert!(has_retry(&agent.refusal().await));
    server.ended().await;
}

#[tokio::test]
async fn session_that_does_not_finish_ends_at_the_deadline_of_its_drain() {
    let mut server = Running::start_with(Config {
        drain_deadline: Duration::from_millis(300),
        ..unhurried()
    })
    .await;
    let sets = vec![replica_set("web").replicas(1).build()];
    let mut agent = Agent::open_on(&server, "c1", sets, vec![]).await;
    agent.batch().await;
    server.begin_stop();
    let deadline = told(&mut agent).await.close_time.expect("until when");
    let deadline = SystemTime::try_from(deadline).expect("it is a time");
    assert_refusal(&agent.refusal().await, Code::Unavailable, "SERVER_DRAINING");
    let early = deadline.duration_since(SystemTime::now());
    assert!(early.is_err(), "{early:?} before the deadline");
    server.ended().await;
}

#[tokio::test]
async fn agent_that_is_stopped_reports_what_was_in_flight() {
    let server = Running::start().await;
    let cluster = FakeCluster::start(brisk_cluster(), Vec::new()).expect("it is empty");
    cluster.with(|it| {
        let late = Fault::delay(Duration::from_millis(20)).on(Verb::Create);
        it.create(builders::replica_set("web").replicas(3).build())
            .expect("valid");
        it.faults_mut().add(late);
    });
    let pods = || cluster.with(|it| it.objects(Kind::Pod).count());
    let stop = CancellationToken::new();
    let config = ShellConfig::new(Connector::local(&server.addresses.grpc));
    let agent = decree_agent::run(config, cluster.clone(), stop.clone());
    let agent = tokio::spawn(agent);
    soon(async {
        while pods() == 0 {
            cluster.changed().await;
        }
    })
    .await;
    stop.cancel();
    let ended = soon(agent).await.expect("it does not panic");
    ended.expect("it ends in order");
    assert_eq!(pods(), 1);
    for (result, count) in [("done", 1.0), ("not_started_not_enforcing", 2.0)] {
        let series = format!("decree_operations_total{{op=\"create\",result=\"{result}\"}}");
        server.until(&series, |found| found >= count).await;
    }
}
