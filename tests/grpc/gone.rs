//! Agents whose stream or connection ends in the middle of a message.

use decree_api::v1::{self, reconcile_request::Frame};
use prost::Message as _;
use tests::http2::{
    DATA, END_HEADERS, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame, request,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    agent::hello,
    running::{Running, soon, unhurried},
};

/// Error codes of HTTP/2.
const CODES: [u32; 5] = [0, 1, 2, 8, 11];

/// How an agent leaves.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// By a reset of its stream, with this code.
    Stream(u32),
    /// By the end of its connection.
    Connection,
    /// By a reset of its connection.
    ConnectionReset,
    /// By the end of its connection, announced with this code.
    Goaway(u32),
}

/// A message of gRPC, of this length by its header.
fn message(length: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).expect("short").to_be_bytes();
    [&[0][..], &length, bytes].concat()
}

/// Opens a session, sends half a frame, and leaves.
async fn leave(server: &Running, leaves: Leaves) {
    let address = server.addresses.grpc.tcp().expect("it listens on TCP");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let greeting = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(Frame::Hello(hello("c1"))),
    };
    let half = message(100, &[1; 50]);
    let greeting = greeting.encode_to_vec();
    let sent = [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_HEADERS, 1, &request("Reconcile", 0)),
        frame(DATA, 0, 1, &message(greeting.len(), &greeting)),
        frame(DATA, 0, 1, &half),
    ];
    stream.write_all(&sent.concat()).await.expect("it reads");
    server.until("decree_sessions", |count| count > 0.5).await;
    let last = match leaves {
        Leaves::Stream(code) => frame(RST_STREAM, 0, 1, &code.to_be_bytes()),
        Leaves::Goaway(code) => frame(GOAWAY, 0, 0, &[[0; 4], code.to_be_bytes()].concat()),
        Leaves::Connection | Leaves::ConnectionReset => Vec::new(),
    };
    stream.write_all(&last).await.expect("it reads");
    if matches!(leaves, Leaves::ConnectionReset) {
        stream.set_zero_linger().expect("it is a socket");
    }
    if matches!(leaves, Leaves::Stream(_)) {
        // Nothing but the stream ends.
        server.until("decree_sessions", |count| count < 0.5).await;
    }
    drop(stream);
    server.until("decree_sessions", |count| count < 0.5).await;
}

#[tokio::test]
async fn agent_that_leaves_amid_a_message_is_gone_and_has_sent_nothing_malformed() {
    let server = Running::start_with(unhurried()).await;
    let by_stream = CODES.map(Leaves::Stream).into_iter();
    let by_connection = CODES.map(Leaves::Goaway).into_iter();
    let bare = [Leaves::Connection, Leaves::ConnectionReset];
    let all: Vec<_> = by_stream.chain(by_connection).chain(bare).collect();
    for (before, leaves) in all.into_iter().enumerate() {
        leave(&server, leaves).await;
        let ends = soon(async {
            loop {
                let ends = ends(&server.metrics().await);
                if ends.len() > before {
                    break ends;
                }
            }
        });
        let gone = vec!["AGENT_GONE"; before + 1];
        assert_eq!(ends.await, gone, "{leaves:?}");
    }
}

/// The reason of each ended session, from the page of metrics.
fn ends(page: &str) -> Vec<String> {
    let series = page.lines().filter_map(|line| {
        let (reason, count) = line
            .strip_prefix("decree_session_ends_total{reason=\"")?
            .split_once("\"} ")?;
        let count: usize = count.parse().expect("a number");
        Some(vec![reason.to_owned(); count])
    });
    series.flatten().collect()
}
