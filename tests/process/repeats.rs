//! What a peer can repeat at will, by the thousand, and the lines of the log.

use decree::v1::{
    self, decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient, reconcile_request::Frame,
};
use serde_json::Value;
use tests::{
    issuer::{ISSUER, Issuer},
    objects,
    running::{Running, Voice},
};
use tonic::transport::Channel;

use crate::world::{for_grpc_alone, program};

const TIMES: u64 = 1_000;
/// The lines of a server that starts and ends.
const OWN_LINES: usize = 8;

async fn channel(server: &Running) -> Channel {
    let url = format!("http://{}", server.address("grpc"));
    let endpoint = Channel::from_shared(url).expect("it is a URL");
    endpoint.connect().await.expect("it listens")
}

/// Opens a session, or is refused one.
async fn open(channel: &Channel, cluster: &str) {
    let hello = Frame::Hello(objects::hello(cluster));
    let frame = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(hello),
    };
    let mut client = DecisionServiceClient::new(channel.clone());
    let frames = tokio_stream::once(frame);
    let Ok(answer) = client.reconcile(frames).await else {
        return;
    };
    let mut frames = answer.into_inner();
    // To its end, which the end of our half causes.
    while let Ok(Some(_)) = frames.message().await {}
}

/// Ends a server, and returns the lines of its log with a message, of all that it has written.
fn lines(server: Running, message: &str) -> (Vec<Value>, usize) {
    server.terminate();
    let said = server.wait_for_end();
    let parsed = said.iter().map(|line| serde_json::from_str(line));
    let parsed: Vec<Value> = parsed.collect::<Result<_, _>>().expect("JSON");
    let found = parsed.iter().filter(|line| line["message"] == message);
    (found.cloned().collect(), said.len())
}

fn start(flags: &[&str]) -> Running {
    let mut command = for_grpc_alone(program("decree-server"));
    command.args(flags);
    Running::start(command, Voice::Stderr)
}

/// Checks that a message has a line at the beginning and one at the end, which names the number left out, and that a server writes
/// few other lines. Returns the lines.
fn assert_two(server: Running, message: &str, times: u64) -> Vec<Value> {
    let (lines, all) = lines(server, message);
    let omitted: Vec<_> = lines.iter().map(|line| line["omitted"].as_u64()).collect();
    assert_eq!(omitted, [None, Some(times - 2)], "{lines:#?}");
    assert_eq!(lines[0]["peer"], "127.0.0.1");
    assert!(all <= OWN_LINES + 4, "{all} lines");
    lines
}

#[tokio::test]
async fn sessions_that_open_and_close_or_are_refused_by_the_thousand_are_two_lines_of_each_kind() {
    for (message, cluster) in [
        ("session opened", "c1"),
        ("session ended", "c1"),
        ("session refused", "no uid\u{202e}"),
    ] {
        let server = start(&[]);
        let channel = channel(&server).await;
        for _ in 0..TIMES {
            open(&channel, cluster).await;
        }
        assert_two(server, message, TIMES);
    }
}

#[tokio::test]
async fn calls_that_are_denied_by_the_thousand_are_two_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let issuer = Issuer::new(folder.path());
    let keys = issuer.file().display().to_string();
    let server = start(&["--token-issuer", ISSUER, "--token-keys", &keys]);
    let channel = channel(&server).await;
    let mut client = InspectionServiceClient::new(channel.clone());
    for _ in 0..TIMES {
        let denied = client.list_sessions(v1::ListSessionsRequest {}).await;
        denied.expect_err("it has no token");
    }
    open(&channel, "c1").await;
    let lines = assert_two(server, "denied", TIMES + 1);
    assert_eq!(lines[1]["method"], "/decree.v1.DecisionService/Reconcile");
}
