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
/// The lines of each peer and message in a minute.
const LINES_MAX: usize = 5;

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

/// Ends a server, and returns the lines of its log.
fn lines(server: Running) -> Vec<Value> {
    server.terminate();
    let said = server.wait_for_end();
    let parsed = said.iter().map(|line| serde_json::from_str(line));
    parsed.collect::<Result<_, _>>().expect("JSON")
}

fn start(flags: &[&str]) -> Running {
    let mut command = for_grpc_alone(program("decree-server"));
    command.args(flags);
    Running::start(command, Voice::Stderr)
}

/// Checks that a message has a few lines, that one says that further ones are left out, and that a server writes few other lines.
/// Returns the lines.
fn assert_few(server: Running, message: &str) -> Vec<Value> {
    let lines = lines(server);
    let of = |message: &str| {
        let found = lines.iter().filter(|line| line["message"] == message);
        found.cloned().collect::<Vec<_>>()
    };
    let (found, notes) = (of(message), of("further lines are left out for a minute"));
    assert_eq!(found.len(), LINES_MAX, "{found:#?}");
    assert_eq!(notes[0]["peer"], "127.0.0.1", "{notes:#?}");
    let all_max = OWN_LINES + 2 * (LINES_MAX + 1);
    assert!(lines.len() <= all_max, "{lines:#?}");
    found
}

#[tokio::test]
async fn sessions_that_open_and_close_or_are_refused_by_the_thousand_are_a_few_lines_of_each_message()
 {
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
        assert_few(server, message);
    }
}

#[tokio::test]
async fn calls_that_are_denied_by_the_thousand_are_a_few_lines() {
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
    let lines = assert_few(server, "denied");
    assert_eq!(
        lines[0]["method"],
        "/decree.v1.InspectionService/ListSessions"
    );
    assert_eq!(lines[0]["peer"], "127.0.0.1");
}
