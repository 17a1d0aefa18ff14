//! Places: an idle holder of places keeps no honest agent out.

use std::time::Duration;

use decree_server::Config;
use tests::http2::{PING, PREFACE, SETTINGS, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    agent::{Agent, hello},
    running::{Running, StoppedTime, soon, unhurried},
};

fn ping() -> Vec<u8> {
    frame(PING, 0, 0, &[1; 8])
}

async fn until_no_connection(server: &Running) {
    server
        .until("decree_connections", |count| count < 0.5)
        .await;
}

#[tokio::test]
async fn connection_without_calls_is_closed() {
    let idle_deadline = Duration::from_secs(10);
    let time = StoppedTime::stop();
    let server = Running::start_with(Config {
        idle_deadline,
        ..Config::embedded()
    })
    .await;
    let mut health = HealthClient::new(server.channel().await);
    let answer = health.check(HealthCheckRequest::default()).await;
    answer.expect("it serves");
    time.pass(idle_deadline).await;
    until_no_connection(&server).await;
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.snapshot(vec![], vec![]).await;
    time.pass(idle_deadline).await;
    let mut other = health.check(HealthCheckRequest::default()).await;
    if other.is_err() {
        // The client may have had no time to notice.
        other = health.check(HealthCheckRequest::default()).await;
    }
    other.expect("the client connects again");
    agent.prove_alive().await;
}

#[tokio::test]
async fn peer_that_answers_pings_and_calls_nothing_is_closed() {
    let time = StoppedTime::stop();
    let server = Running::start_with(Config::embedded()).await;
    let mut stream = server.socket().await;
    let begun = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &ping()].concat();
    stream.write_all(&begun).await.expect("it is open");
    let mut bytes = [0; 1024];
    let answered = soon(stream.read(&mut bytes)).await;
    assert!(answered.is_ok_and(|count| count > 0));
    time.pass(Config::embedded().hello_deadline).await;
    let closed = async {
        loop {
            let sent = stream.write_all(&ping()).await;
            let read = stream.read(&mut bytes).await;
            if sent.is_err() || !read.is_ok_and(|count| count > 0) {
                return;
            }
        }
    };
    soon(closed).await;
}

#[tokio::test]
async fn peer_that_pings_and_never_reads_is_given_up() {
    let mut server = Running::start_with(Config {
        heartbeat_interval: Duration::from_millis(25),
        ..unhurried()
    })
    .await;
    let mut stream = server.socket().await;
    stream.write_all(PREFACE).await.expect("it is open");
    let pings = ping().repeat(4096);
    let given_up = async { while stream.write_all(&pings).await.is_ok() {} };
    soon(given_up).await;
    until_no_connection(&server).await;
    server.begin_stop();
    server.ended().await;
}

#[tokio::test]
async fn refused_streams_do_not_end_a_session_on_their_connection() {
    let server = Running::start_within(|limits| limits.sessions_max = 1).await;
    let client = server.decisions().await;
    let session = Agent::connect_by(client.clone()).await;
    let (mut session, _) = session.greet(hello("c1")).await;
    session.snapshot(vec![], vec![]).await;
    for _ in 0..1_500 {
        let mut refused = Agent::connect_by(client.clone()).await;
        refused.say_hello("c2").await;
        assert_eq!(refused.refusal().await.code(), Code::ResourceExhausted);
    }
    session.prove_alive().await;
}
