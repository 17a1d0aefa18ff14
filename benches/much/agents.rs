//! A thousand agents on one server, which comes back after its end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tests::{rng::Rng, table::head, usage::peak_mb};
use tokio::{task::JoinSet, time};

use crate::{
    client::{Client, Ended},
    measured::{megabytes, print, seconds},
    objects::Shape,
    pace::{pace, queue},
    server::Server,
    sizes::{number, share},
};

/// The objects of each cluster.
const SHAPE: Shape = Shape {
    replica_sets: 100,
    pods: 10,
};
/// The longest and the shortest wait between two attempts of an agent.
const RETRY: [u64; 2] = [100, 2_000];
/// The time for which the agents try to connect.
const PATIENCE: Duration = Duration::from_secs(120);
/// The shorter time for a server that refuses some agents in any case.
const PATIENCE_OF_DEFAULTS: Duration = Duration::from_secs(15);
const COLUMNS: [&str; 8] = [
    "agents",
    "server",
    "synced",
    "all after",
    "goal",
    "peak of memory",
    "p50, p99 of an event",
    "refused tries",
];

/// The number of failed attempts by reason.
type Reasons = Arc<Mutex<BTreeMap<String, usize>>>;

pub(crate) async fn run() {
    let agents = number("DECREE_MUCH_AGENTS", share(1_000));
    head("Many agents of 1,000 pods each", &COLUMNS);
    let flags = flags(agents);
    let server = Server::start(&[]);
    let connected = connect(&server, agents, PATIENCE_OF_DEFAULTS).await;
    print_row("fresh, without flags", agents, &server, connected).await;
    drop(server);
    let server = Server::start(&flags);
    let connected = connect(&server, agents, PATIENCE).await;
    print_row("fresh", agents, &server, connected).await;
    let address = server.kill();
    let server = Server::start_at(&address, &flags);
    let connected = connect(&server, agents, PATIENCE).await;
    print_row("back after its end", agents, &server, connected).await;
}

/// The flags of a server of `agents` agents, which all come from one address.
fn flags(agents: usize) -> Vec<String> {
    let room = |flag: &str, count: usize| format!("{flag}={count}");
    vec![
        room("--sessions-max", agents + 64),
        "--memory-max=2147483648".to_owned(),
    ]
}

/// The results of the agents.
struct Connected {
    clients: Vec<Client>,
    took: Duration,
    reasons: BTreeMap<String, usize>,
}

/// Connects all agents at once. Each agent retries until it has its session.
async fn connect(server: &Server, agents: usize, patience: Duration) -> Connected {
    let start = Instant::now();
    let reasons = Reasons::default();
    let mut tasks = JoinSet::new();
    for number in 0..agents {
        let (address, reasons) = (server.address.clone(), Arc::clone(&reasons));
        let opened = async move { open(&address, number, &reasons).await };
        tasks.spawn(time::timeout(patience, opened));
    }
    let mut clients = Vec::new();
    while let Some(opened) = tasks.join_next().await {
        clients.extend(opened.expect("it does not panic"));
    }
    let took = start.elapsed();
    let reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner);
    Connected {
        clients,
        took,
        reasons: reasons.clone(),
    }
}

/// Opens the session of an agent. The agent has synced when its first decision arrives.
async fn open(address: &str, number: usize, reasons: &Reasons) -> Client {
    let mut rng = Rng::new(number as u64);
    let [mut wait, longest] = RETRY;
    loop {
        match try_open(address, number).await {
            Ok(client) => return client,
            Err(error) => {
                let mut reasons = reasons.lock().unwrap_or_else(PoisonError::into_inner);
                *reasons.entry(root_of(&*error)).or_default() += 1;
            }
        }
        time::sleep(Duration::from_millis(wait / 2 + rng.between(0, wait))).await;
        wait = (2 * wait).min(longest);
    }
}

async fn try_open(address: &str, number: usize) -> Result<Client, Ended> {
    let mut client = Client::open(address, &format!("cluster-{number}"), SHAPE).await?;
    client.list().await?;
    Ok(client)
}

/// The innermost cause.
fn root_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    let text = root.to_string();
    text.chars().take(80).collect()
}

/// Lets the agents that have synced lose pods in turn, and prints the results of all agents.
async fn print_row(name: &str, agents: usize, server: &Server, connected: Connected) {
    let synced = connected.clients.len();
    let rate = number("DECREE_MUCH_RATE", 1_000);
    let length = Duration::from_secs(number("DECREE_MUCH_SECONDS", 20));
    let mut tasks = JoinSet::new();
    let mut takers = Vec::new();
    for mut client in connected.clients {
        let (due, dues) = queue();
        takers.push(due);
        tasks.spawn(async move { client.lose(dues).await });
    }
    tokio::spawn(pace(rate, length, takers));
    let mut waits = crate::measured::Waits::default();
    while let Some(lost) = tasks.join_next().await {
        let lost = lost.expect("it does not panic");
        waits.extend(lost.expect("the session lives"));
    }
    let refused: Vec<_> = connected
        .reasons
        .iter()
        .map(|(reason, times)| format!("{times} × {reason}"))
        .collect();
    print(&[
        &agents.to_string(),
        name,
        &synced.to_string(),
        &seconds(connected.took),
        "10 s",
        &megabytes(peak_mb(server.id())),
        &waits.cells([0.5, 0.99]).join(", "),
        &refused.join("; "),
    ]);
}
