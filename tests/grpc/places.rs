//! Places: an idle holder of places keeps no honest agent out.

use std::time::Duration;

use decree_server::Config;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use crate::{
    agent::{Agent, hello},
    raw::{Call, message},
    refusal::assert_limit,
    running::{Running, StoppedTime, soon, unhurried},
};

const DECIDE: &str = "/decree.v1.DecisionService/Decide";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The header of an empty SETTINGS frame.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];

async fn until_no_connection(server: &Running) {
    server
        .until("decree_connections", |count| count < 0.5)
        .await;
}

#[tokio::test]
async fn connections_that_do_nothing_give_way_to_an_agent_and_its_session_to_none() {
    let server = Running::start_within(|limits| limits.connections_max = 8).await;
    let mut idle = Vec::new();
    for _ in 0..12 {
        idle.push(server.socket().await);
    }
    let (mut agent, _) = Agent::open(&server, "c1").await;
    for _ in 0..12 {
        let mut stream = server.socket().await;
        stream.write_all(PREFACE).await.expect("it is open");
        idle.push(stream);
    }
    agent.snapshot(vec![], vec![]).await;
    agent.prove_alive().await;
    let mut first = Vec::new();
    // The end depends on the messages in flight.
    let _ = soon(idle[0].read_to_end(&mut first)).await;
}

#[tokio::test]
async fn streams_that_say_no_hello_give_way_to_an_agent() {
    let server = Running::start_within(|limits| {
        limits.pending_sessions_max = 4;
        limits.sessions_max = 1;
    })
    .await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        silent.push(Agent::connect(&server).await);
    }
    let (mut agent, _) = Agent::open(&server, "c1").await;
    agent.snapshot(vec![], vec![]).await;
    agent.prove_alive().await;
    let refusal = silent[0].refusal().await;
    assert_limit(&refusal, "pending sessions");
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
    let begun = [PREFACE, SETTINGS, PING].concat();
    stream.write_all(&begun).await.expect("it is open");
    let mut bytes = [0; 1024];
    let answered = soon(stream.read(&mut bytes)).await;
    assert!(answered.is_ok_and(|count| count > 0));
    time.pass(Config::embedded().hello_deadline).await;
    let closed = async {
        loop {
            let sent = stream.write_all(PING).await;
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
    let pings = PING.repeat(4096);
    let given_up = async { while stream.write_all(&pings).await.is_ok() {} };
    soon(given_up).await;
    until_no_connection(&server).await;
    server.begin_stop();
    server.ended().await;
}

#[tokio::test]
async fn server_ends_in_time_beside_a_peer_that_pings_and_never_reads() {
    let mut server = Running::start_with(Config {
        drain_deadline: Duration::from_millis(100),
        ..unhurried()
    })
    .await;
    let mut stream = server.socket().await;
    stream.write_all(PREFACE).await.expect("it is open");
    let pings = PING.repeat(4096);
    // When the client's writes stall, the server's writes stall as well.
    let mut sent = 0;
    let mut write = async || {
        let written = stream.write(&pings[sent..]).await;
        sent = (sent + written.expect("the server has not closed")) % pings.len();
    };
    while timeout(Duration::from_secs(1), write()).await.is_ok() {}
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

#[tokio::test]
async fn oldest_call_gives_way_where_there_are_too_many() {
    let server = Running::start_within(|limits| {
        limits.calls_max = 2;
        limits.peer_share = 100;
    })
    .await;
    let mut health = HealthClient::new(server.channel().await);
    let mut watches = Vec::new();
    for _ in 0..3 {
        let watch = health.watch(HealthCheckRequest::default()).await;
        let mut watch = watch.expect("it opens").into_inner();
        soon(watch.message()).await.expect("a state");
        watches.push(watch);
    }
    let end = soon(watches[0].message()).await.expect_err("it gives way");
    assert_limit(&end, "calls");
}

#[tokio::test]
async fn bytes_held_for_longest_give_way_where_there_are_too_many() {
    let server = Running::start_within(|limits| {
        limits.received_bytes_max = 512 << 10;
        limits.peer_share = 100;
    })
    .await;
    let call = || Call::new(DECIDE, message(0, Some(1_000_000), &[0; 300_000])).endless();
    let (first, second) = (call().send(&server), call().send(&server));
    let answer = tokio::select! {
        first = first => first,
        second = second => second,
    };
    let status = answer.status.expect("a status");
    assert_limit(&status, "received bytes");
}

#[tokio::test]
async fn connections_of_the_admin_port_that_do_nothing_keep_no_probe_out() {
    let server = Running::start_within(|limits| limits.admin_connections_max = 4).await;
    let address = server.addresses.admin.expect("the admin port is on");
    let mut idle = Vec::new();
    for _ in 0..8 {
        let stream = TcpStream::connect(address).await;
        idle.push(stream.expect("it listens"));
    }
    assert_eq!(server.admin("/readyz").await.0, 200);
    let mut rest = Vec::new();
    // The end does not matter.
    let _ = soon(idle[0].read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn server_without_room_for_a_session_is_not_ready() {
    let server = Running::start_within(|limits| limits.sessions_max = 1).await;
    assert_eq!(server.admin("/readyz").await.0, 200);
    let (agent, _) = Agent::open(&server, "c1").await;
    let becomes = async |expected: (u16, &str)| {
        let reached = async {
            while server.admin("/readyz").await != (expected.0, expected.1.to_owned()) {
                tokio::task::yield_now().await;
            }
        };
        soon(reached).await;
    };
    becomes((503, "limit of sessions reached\n")).await;
    drop(agent);
    becomes((200, "ok\n")).await;
}
