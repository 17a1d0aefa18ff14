//! What a peer can repeat at will, by the thousand, and the lines of the log.

use decree_api::v1::{
    self, decision_service_client::DecisionServiceClient,
    inspection_service_client::InspectionServiceClient, reconcile_request::Frame,
};
use serde_json::Value;
use tests::{
    issuer::{ISSUER, Issuer},
    objects,
    running::{Running, Voice},
};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::Channel,
};

use crate::world::{for_grpc_alone, program};

/// The number of turns of three calls: a slow machine makes them within a minute.
const TURNS: u64 = 350;
/// The lines of each peer and message in a minute.
const LINES_MAX: usize = 5;
/// The messages of the peer.
const MESSAGES: [&str; 4] = [
    "denied",
    "session opened",
    "session ended",
    "session refused",
];
/// The lines of a server that starts and ends.
const OWN_LINES: usize = 8;

/// Opens a session, or is refused one.
async fn open(channel: &Channel, token: &MetadataValue<Ascii>, cluster: &str) {
    let hello = Frame::Hello(objects::hello(cluster));
    let frame = v1::ReconcileRequest {
        sequence: 1,
        frame: Some(hello),
    };
    let mut request = Request::new(tokio_stream::once(frame));
    let metadata = request.metadata_mut();
    metadata.insert("authorization", token.clone());
    let mut client = DecisionServiceClient::new(channel.clone());
    let Ok(answer) = client.reconcile(request).await else {
        return;
    };
    let mut frames = answer.into_inner();
    // To its end, which the end of our half causes.
    while let Ok(Some(_)) = frames.message().await {}
}

fn of<'a>(lines: &'a [Value], message: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_of_it = move |line: &&Value| line["message"] == message;
    lines.iter().filter(is_of_it)
}

#[tokio::test]
async fn calls_and_sessions_by_the_thousand_are_a_few_lines_of_each_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let issuer = Issuer::new(folder.path());
    let mut command = for_grpc_alone(program("decree-server"));
    command.args(["--token-issuer", ISSUER, "--token-keys"]);
    command.arg(issuer.file());
    let server = Running::start(command, Voice::Stderr);
    let url = format!("http://{}", server.address("grpc"));
    let endpoint = Channel::from_shared(url).expect("it is a URL");
    let channel = endpoint.connect().await.expect("it listens");
    let token = format!("Bearer {}", issuer.token("agent"));
    let token = token.parse().expect("it is ASCII");
    let mut client = InspectionServiceClient::new(channel.clone());
    for _ in 0..TURNS {
        let denied = client
            .list_sessions(v1::ListSessionsRequest::default())
            .await;
        denied.expect_err("it has no token");
        open(&channel, &token, "c1").await;
        open(&channel, &token, "no uid\u{202e}").await;
    }
    server.terminate();
    let lines = server.wait_for_end();
    let lines = lines.iter().map(|line| serde_json::from_str(line));
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    for message in MESSAGES {
        assert_eq!(
            of(&lines, message).count(),
            LINES_MAX,
            "{message}: {lines:#?}"
        );
    }
    let method = "/decree.v1.InspectionService/ListSessions";
    let are_of_it = |line: &Value| line["method"] == method && line["peer"] == "127.0.0.1";
    assert!(of(&lines, "denied").all(are_of_it), "{lines:#?}");
    // Who has an identity is known by it, and others by their address.
    for peer in ["127.0.0.1", "sub:agent"] {
        let mut notes = of(&lines, "further lines are left out for a minute");
        assert!(notes.any(|note| note["peer"] == peer), "{lines:#?}");
    }
    let all_max = OWN_LINES + MESSAGES.len() * (LINES_MAX + 1);
    assert!(lines.len() <= all_max, "{lines:#?}");
}
