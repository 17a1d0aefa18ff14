//! From the start to the first decision: of a server that receives a list, and of an agent in front of an API server.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice},
    table::head,
    usage::{peak_mb, processor_s},
};

use crate::{
    api_server::ApiServer,
    client::Client,
    measured::{megabytes, print, seconds},
    objects::Shape,
    server::Server,
    sizes::shape,
};

const COLUMNS: [&str; 7] = [
    "pods",
    "from",
    "until the first decision",
    "goal",
    "peak of memory",
    "goal",
    "processor",
];

/// Prints both tables.
pub(crate) async fn run() {
    let shape = shape(10_000, 15);
    head("Cold to the first decision", &COLUMNS);
    server(shape).await;
    agent(shape).await;
}

/// The list is made before it is sent, so the server waits only for the encoding of the list.
async fn server(shape: Shape) {
    let frames: Vec<_> = shape.frames().collect();
    let server = Server::start(&[]);
    let mut client = Client::open(&server.address, "cold", shape).await;
    let client = client.as_mut().expect("the session opens");
    let before = processor_s(server.id());
    let start = Instant::now();
    let sent = client.send_list(frames.into_iter()).await;
    sent.expect("the list is taken");
    let decided = client.first_decision().await.expect("a decision comes");
    print(&[
        &shape.total().to_string(),
        "the first byte of the list at the server",
        &seconds(decided - start),
        "1 s",
        &megabytes(peak_mb(server.id())),
        "100 MB",
        &format!("{:.2} s", processor_s(server.id()) - before),
    ]);
}

/// The agent lists in pages of 500 pods. The API server determines the size of a pod.
async fn agent(shape: Shape) {
    let mut api = ApiServer::start(shape).await;
    let server = Server::start(&[]);
    let folder = TempDir::new().expect("there is room");
    let kubeconfig = folder.path().join("config");
    fs::write(&kubeconfig, api.kubeconfig()).expect("there is room");
    let mut command = Command::new(binaries::folder().join("decree-agent"));
    command
        .args(["--server", &format!("http://{}", server.address)])
        .args(["--leader-elect=false", "--admin=off"])
        // The agent waits for an answer to its probe first, for 2 s.
        .args(["--built-in-controller=off", "--kubeconfig"])
        .arg(&kubeconfig);
    let start = Instant::now();
    let agent = Running::start(command, Voice::Stderr);
    let waited = tokio::time::timeout(Duration::from_secs(600), api.first_create()).await;
    let Ok(Some(decided)) = waited else {
        panic!("no pod was created: {}", agent.tail().join("\n"))
    };
    let from = format!(
        "the start of the agent, whose lists have {:.0} MB",
        api.listed_bytes() as f64 / 1e6
    );
    print(&[
        &shape.total().to_string(),
        &from,
        &seconds(decided - start),
        "",
        &format!(
            "{}, the server's {}",
            megabytes(peak_mb(agent.id())),
            megabytes(peak_mb(server.id()))
        ),
        "150 MB",
        &format!("{:.2} s", processor_s(agent.id())),
    ]);
}
