//! A million pods in one session.

use std::time::{Duration, Instant};

use tests::{
    table::head,
    usage::{peak_mb, processor_s},
};

use crate::{
    client::Client,
    measured::{megabytes, print, seconds},
    pace::{pace, queue},
    server::Server,
    sizes::{number, shape},
};

/// The limits that one session of a million pods needs, above the defaults.
const ROOM: [&str; 2] = ["--session-memory-max=4294967296", "--memory-max=4294967296"];
const COLUMNS: [&str; 8] = [
    "pods",
    "ReplicaSets",
    "list until the first decision",
    "processor of it",
    "peak of memory",
    "p50 of an event",
    "p99 of an event",
    "events/s",
];

pub(crate) async fn run() {
    let shape = shape(20_000, 50);
    head("A million pods on one server", &COLUMNS);
    let frames: Vec<_> = shape.frames().collect();
    let server = Server::start(&ROOM.map(str::to_owned));
    let client = Client::open(&server.address, "million", shape).await;
    let mut client = client.expect("the session opens");
    let before = processor_s(server.id());
    let start = Instant::now();
    let sent = client.send_list(frames.into_iter()).await;
    sent.expect("the list is taken");
    let decided = client.first_decision().await.expect("a decision comes");
    let processor = processor_s(server.id()) - before;
    let rate = number("DECREE_MUCH_RATE", 100);
    let length = Duration::from_secs(number("DECREE_MUCH_SECONDS", 30));
    let (due, dues) = queue();
    tokio::spawn(pace(rate, length, vec![due]));
    let waits = client.lose(dues).await.expect("the session lives");
    let [p50, p99] = waits.cells([0.5, 0.99]);
    print(&[
        &shape.total().to_string(),
        &shape.replica_sets.to_string(),
        &seconds(decided - start),
        &format!("{processor:.2} s"),
        &megabytes(peak_mb(server.id())),
        &p50,
        &p99,
        &rate.to_string(),
    ]);
}
