//! The console over HTTP: its permissions, and its limits towards the rest of the admin port.

use decree_api::v1;
use serde_json::Value;
use tests::objects::{pod, replica_set, set_ref};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use crate::{
    access::Guarded,
    agent::{Agent, hello},
    running::{Running, soon},
};

const BOARD: &str = "/console/api/stream?view=board";

/// An answer of the admin port, whose body is read as it comes.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: BufReader<TcpStream>,
}

/// Asks the admin port with further headers, each with its line break.
pub(crate) async fn ask(server: &Running, path: &str, headers: &str) -> Answer {
    let address = server.addresses.admin.expect("the admin port is on");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("it reads");
    let mut body = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = soon(body.read_line(&mut head)).await;
        let read = read.expect("it answers in text");
        assert_ne!(read, 0, "it closed after {head:?}");
    }
    let status = head.split(' ').nth(1).expect("a status");
    Answer {
        status: status.parse().expect("a number"),
        head,
        body,
    }
}

/// Whether the output has no labels of a ReplicaSet's template.
fn shows_no_labels(summary: &Value) -> bool {
    let labels = summary["templateLabels"].as_object();
    labels.is_none_or(serde_json::Map::is_empty)
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

impl Answer {
    /// The data of the next event of this name; `None` at the end of the stream.
    async fn event(&mut self, name: &str) -> Option<Value> {
        let wanted = format!("event: {name}\n");
        let mut line = String::new();
        let mut found = false;
        loop {
            line.clear();
            if soon(self.body.read_line(&mut line)).await.unwrap_or(0) == 0 {
                return None;
            }
            if found && let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
            found |= line == wanted;
        }
    }

    /// The names of the ReplicaSets of the first rows.
    async fn first_rows(&mut self) -> Vec<String> {
        let rows = self.event("rows").await.expect("there are rows");
        let names = rows.as_array().expect("a list").iter().map(|row| {
            assert!(shows_no_labels(row), "{row}");
            let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
            text(&row["cluster"]) + "/" + &text(&row["replicaSet"]["name"])
        });
        names.collect()
    }

    /// A body of known length.
    async fn text(mut self) -> String {
        let length = self.head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).expect("a length");
        let length = length.split("\r\n").next().and_then(|it| it.parse().ok());
        let mut body = vec![0; length.expect("a number")];
        let read = soon(self.body.read_exact(&mut body)).await;
        read.expect("all of it");
        String::from_utf8(body).expect("text")
    }

    async fn json(self) -> Value {
        serde_json::from_str(&self.text().await).expect("JSON")
    }
}

#[tokio::test]
async fn pages_of_the_console_come_with_a_strict_policy() {
    let server = Running::start().await;
    let page = ask(&server, "/console/", "").await;
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(page.head.contains(header), "{header} in {}", page.head);
    }
    assert!(!page.head.contains("unsafe"), "{}", page.head);
    assert_eq!(ask(&server, "/", "").await.status, 307);
}

#[tokio::test]
async fn pages_show_no_labels_and_the_board_says_what_is_gone() {
    let server = Running::start().await;
    let sets = ["api", "web"].map(|name| replica_set(name).replicas(1).build());
    let mut agent = Agent::open_on(&server, "laptop", sets.to_vec(), vec![]).await;
    agent.batches().await;
    let path = "/console/api/stream?view=replicaset&cluster=laptop&namespace=default&name=web";
    let standing = ask(&server, path, "").await.event("replicaset").await;
    let standing = standing.expect("it is there");
    assert!(shows_no_labels(&standing["summary"]), "{standing}");
    let mut board = ask(&server, BOARD, "").await;
    assert_eq!(board.first_rows().await, ["laptop/api", "laptop/web"]);
    let gone = set_ref(&replica_set("api").build());
    agent.deleted(v1::Kind::ReplicaSet, gone, "300").await;
    loop {
        let standing = board.event("board").await.expect("it goes on");
        if standing["gone"][0] == "api-uid laptop" {
            return;
        }
    }
}

#[tokio::test]
async fn page_knows_whether_commands_of_kubectl_help() {
    let server = Running::start().await;
    for (cluster, platform, is_kubernetes) in [
        ("other", v1::Platform::Other, false),
        ("unsaid", v1::Platform::Unspecified, true),
    ] {
        let hello = v1::Hello {
            platform: platform.into(),
            ..hello(cluster)
        };
        let (mut agent, _) = Agent::open_with(&server, hello).await;
        let sets = vec![replica_set("web").replicas(1).build()];
        agent.snapshot(sets, vec![pod("a", "web").build()]).await;
        agent.prove_alive().await;
        let view = format!("replicaset&cluster={cluster}&namespace=default&name=web");
        let path = format!("/console/api/stream?view={view}");
        let pods = ask(&server, &path, "").await.event("pods").await;
        let board = ask(&server, BOARD, "").await.event("board").await;
        for data in [pods, board] {
            assert_eq!(data.expect("it is there")["kubernetes"], is_kubernetes);
        }
    }
}

#[tokio::test]
async fn console_demands_what_the_grpc_port_demands() {
    let guarded = Guarded::start().await;
    let Guarded { server, issuer, .. } = &guarded;
    let mut sessions = Vec::new();
    for cluster in ["a", "b"] {
        let token = issuer.token(&format!("agent-{cluster}"));
        let opened = Agent::open_as(server, &token, hello(cluster)).await;
        let (mut agent, _) = opened.expect("it counts");
        let sets = vec![replica_set("web").build()];
        agent.snapshot(sets, vec![]).await;
        agent.prove_alive().await;
        sessions.push(agent);
    }
    let nobody = ask(server, BOARD, "").await;
    assert_eq!(nobody.status, 401);
    assert_eq!(nobody.json().await["reason"], "CREDENTIAL_REQUIRED");
    let stranger = ask(server, BOARD, &bearer(&issuer.token("stranger"))).await;
    assert_eq!(stranger.status, 403);
    assert_eq!(stranger.json().await["reason"], "NOT_ALLOWED");
    let page = ask(server, "/console/", "").await;
    assert_eq!(page.status, 200, "the page holds nothing");

    let viewer = bearer(&issuer.token("viewer-a"));
    let mut board = ask(server, BOARD, &viewer).await;
    let rows = board.first_rows().await;
    assert!(rows.iter().all(|row| row.starts_with("a/")), "{rows:?}");
    let mut seen = ask(server, "/console/api/stream?view=sessions", &viewer).await;
    let seen = seen.event("sessions").await.expect("what it may see");
    assert_eq!(seen["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(seen["sessions"][0]["beside"]["identity"], "sub:agent-a");
    for what in ["simulate", "rescue", "nodes"] {
        let other =
            format!("/console/api/{what}?cluster=b&namespace=default&name=web&replicas=0&pod=a");
        let other = ask(server, &other, &viewer).await;
        assert_eq!(other.json().await["reason"], "CLUSTER_UNKNOWN");
    }
}

#[tokio::test]
async fn stream_ends_with_the_permission_to_look() {
    let guarded = Guarded::start().await;
    let token = guarded.issuer.token("viewer-a");
    let mut board = ask(&guarded.server, BOARD, &bearer(&token)).await;
    board.event("board").await.expect("it stands");
    guarded.replace_policy("[[grant]]\nidentities = [\"sub:admin\"]\nrole = \"admin\"\n");
    let end = board.event("end").await.expect("it says why it ends");
    assert_eq!(end["reason"], "NOT_ALLOWED");
    assert_eq!(board.event("board").await, None);
}

#[tokio::test]
async fn streams_give_way_to_newer_ones_and_never_keep_metrics_out() {
    let server = Running::start_within(|limits| {
        limits.console_streams_max = 2;
        limits.admin_connections_max = 2;
    })
    .await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = ask(&server, BOARD, "").await;
        stream.event("board").await.expect("it stands");
        streams.push(stream);
    }
    let end = streams[0].event("end").await.expect("the oldest gives way");
    assert_eq!(end["reason"], "DISPLACED");
    for _ in 0..4 {
        assert_eq!(server.admin("/metrics").await.0, 200);
        assert_eq!(server.admin("/readyz").await.0, 200);
    }
    // The scrapes did not displace the streams.
    for stream in &mut streams[1..] {
        stream.event("board").await.expect("it goes on");
    }
}

#[tokio::test]
async fn console_can_be_turned_off() {
    let server = Running::start_within(|limits| limits.console_streams_max = 0).await;
    for path in ["/console/", BOARD, "/"] {
        assert_eq!(ask(&server, path, "").await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn drain_tells_the_pages() {
    let server = Running::start().await;
    let mut board = ask(&server, BOARD, "").await;
    board.event("board").await.expect("it stands");
    server.begin_stop();
    let end = board.event("end").await.expect("it says why it ends");
    assert_eq!(end["reason"], "SERVER_DRAINING");
}
