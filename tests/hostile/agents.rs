//! Malicious servers against the shipped agent: `agents/*.toml`, a [`Cell`] for each way.
//!
//! ```text
//! malicious server ─▶ start agent on an embedded cluster ─▶ frames or bytes, for some seconds ─▶ /livez ─▶ objects ─▶ SIGTERM
//! ```
//! The agent must live, keep its pace, stay within its limits of memory and log, wait whenever it is idle, and end with 0. Nothing
//! in its log may steer a terminal. It writes nothing to its cluster after the honest beginning, by its own count and by the
//! objects that it streams ([`view`]). In some cells, a peer on the machine sends requests to its admin port.

mod server;
mod session;
mod view;

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tempfile::TempDir;
use tests::{
    admin, binaries,
    running::{Running, Voice},
    usage::processor_s,
};
use tokio::runtime::Runtime;

use self::{server::Server, session::Session, view::View};
use crate::{
    connections::Connections,
    process::{comes_to_rest, peak_mib},
    run::beyond,
    seen::Seen,
    target::Target,
};

/// The maximum duration of a wait, which only a hanging process reaches.
const PATIENCE: Duration = Duration::from_mins(3);
/// The interval of checks whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The interval of sessions beyond the first three, in seconds.
const SESSIONS_EVERY: u64 = 1;
/// The interval of lists of a kind beyond the first, in seconds.
const LISTS_EVERY: u64 = 10;
/// The maximum length of a text in a line of the log.
const LINE_MAX: usize = 12 * 1024;
/// Pods and ReplicaSets.
const KINDS: u64 = 2;
/// Two ReplicaSets, and pods that they do not select.
const CLUSTER: &str = include_str!("agents/cluster.yaml");

/// One kind of malicious server, and the required result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// A unique, short description of the server's acts.
    pub(crate) name: String,
    /// The frames of its sessions.
    session: Option<Session>,
    /// Or its bytes below sessions: the steps of [`Connections`].
    wire: Option<Vec<String>>,
    /// The requests to the agent's admin port meanwhile.
    #[serde(default)]
    asked: Vec<Connections>,
    /// The allowed ends of those connections.
    #[serde(default)]
    answers: BTreeSet<String>,
    /// The minimum duration, in seconds.
    #[serde(default = "seconds")]
    pub(crate) seconds: u64,
    /// The allowed reactions of the agent: it `stays` in its session, or `returns` in others.
    ends: Vec<String>,
    /// The rule that refuses operations, if one does.
    rule: Option<String>,
    /// The peak of the process's memory, in MB.
    #[serde(default = "memory_max")]
    memory_mb: u64,
    /// The maximum size of the process's log, in KB.
    #[serde(default = "log_max")]
    log_kb: u64,
}

/// The result of a cell.
pub(crate) struct Found {
    end: &'static str,
    sessions: u64,
    lists: u64,
    memory_mb: u64,
    processor_s: f64,
    log_kb: u64,
    took: Duration,
    /// The violated requirements.
    pub(crate) faults: Vec<String>,
}

fn seconds() -> u64 {
    2
}

fn memory_max() -> u64 {
    128
}

fn log_max() -> u64 {
    64
}

pub(crate) fn run(cell: &Cell) -> Found {
    let start = Instant::now();
    let folder = TempDir::new().expect("a folder");
    let server = cell.server();
    let agent = start_agent(server.address(), folder.path());
    let admin = agent.address("admin");
    let mut faults = Vec::new();
    // The server turns malicious at the first session, or after the first pods if it starts honestly.
    let is_honest = cell.session.as_ref().is_some_and(Session::settles);
    let has_begun = server.wait_until(PATIENCE, |view| {
        view.is_settled() || (!is_honest && view.sessions > 0)
    });
    if !has_begun {
        faults.push("it has not begun".to_owned());
    }
    let before = writes(&admin);
    let seen = ask(&cell.asked, &admin);
    if !seen.ends.is_subset(&cell.answers) {
        faults.push(format!("answers {:?}, not {:?}", seen.ends, cell.answers));
    }
    let _: bool = server.wait_until(Duration::from_secs(cell.seconds), |view| {
        !view.violations.is_empty()
    });
    faults.extend(cell.lacks(&server, &admin));
    let view = server.view();
    // From before the first session, so that every session counted falls into the measured time.
    let lasted = start.elapsed().as_secs() + 1;
    let lives = admin::get(&admin, "/livez");
    faults.extend(lives.err().map(|it| format!("/livez: {it}")));
    faults.extend(cell.excesses(&view, writes(&admin) - before, lasted));
    faults.extend(view.violations.first().cloned());
    faults.extend(steering(&agent));
    if !comes_to_rest(agent.id()) {
        faults.push("it never waits for anything".to_owned());
    }
    let mut found = Found {
        end: match view.sessions {
            0 | 1 => "stays",
            _ => "returns",
        },
        sessions: view.sessions,
        lists: view.lists,
        memory_mb: peak_mib(agent.id()),
        processor_s: processor_s(agent.id()),
        log_kb: agent.bytes() / 1024,
        took: Duration::ZERO,
        faults,
    };
    agent.terminate();
    let tail = agent.tail();
    if agent.wait().code() != Some(0) {
        let fault = format!("it does not end with 0: {}", tail.join("\n"));
        found.faults.push(fault);
    }
    found.bound(cell);
    found.took = start.elapsed();
    found
}

/// Starts the agent on an embedded cluster.
fn start_agent(server: &str, folder: &Path) -> Running {
    let manifest = folder.join("cluster.yaml");
    fs::write(&manifest, CLUSTER).expect("it can be written");
    let mut command = Command::new(binaries::folder().join("decree-agent"));
    command.args(["--cluster", "fake", "--admin", "127.0.0.1:0", "--manifest"]);
    command.arg(manifest);
    command.args(["--server", &format!("http://{server}")]);
    Running::start(command, Voice::Stderr)
}

/// The number of operations that the agent has refused by a rule.
fn refused(admin: &str, rule: &str) -> u64 {
    let metric = format!("decree_agent_operations_refused_total{{rule=\"{rule}\"}}");
    admin::metric(admin, &metric)
}

/// Sends the requests to the admin port in order. Held connections stay open until the result is dropped.
fn ask(asked: &[Connections], admin: &str) -> Seen {
    let mut seen = Seen::default();
    if !asked.is_empty() {
        let runtime = Runtime::new().expect("a runtime");
        for connections in asked {
            seen.add(runtime.block_on(connections.run(admin, &Target::from(admin))));
        }
    }
    seen
}

/// The parts of the agent's log that could steer a terminal, or exceed the maximum length.
fn steering(agent: &Running) -> Vec<String> {
    let steers = |it: char| it.is_control() || ('\u{202a}'..='\u{2069}').contains(&it);
    let lines = agent.wait_for("its lines", |lines| Some(lines.to_vec()));
    let mut faults = Vec::new();
    for line in lines {
        let Ok(serde_json::Value::Object(line)) = serde_json::from_str(&line) else {
            faults.push(format!("a line that is no object: {line}"));
            continue;
        };
        let texts = line.values().filter_map(serde_json::Value::as_str);
        let bad = texts.filter(|text| text.contains(steers) || text.len() >= LINE_MAX);
        faults.extend(bad.map(|text| format!("it logs {text:?}")));
    }
    faults
}

/// The number of writes of the agent to the cluster.
fn writes(admin: &str) -> u64 {
    let page = admin::get(admin, "/metrics").expect("it serves its metrics");
    let is_write = |line: &&str| {
        line.starts_with("decree_agent_calls_total{") && !line.contains("verb=\"read")
    };
    let lines = page.lines().filter(is_write);
    let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    values.sum()
}

impl Cell {
    fn server(&self) -> Server {
        match (self.session.clone(), self.wire.clone()) {
            (Some(session), None) => Server::speaking(session),
            (None, Some(wire)) => Server::sending(wire),
            _ => panic!("{}: a server has a session or bytes", self.name),
        }
    }

    /// Waits for the required results, which may be late on a slow machine. Returns the missing results.
    fn lacks(&self, server: &Server, admin: &str) -> Vec<String> {
        let mut lacks = Vec::new();
        // A refused agent also proves itself by another attempt.
        let must_return = self.ends.iter().all(|end| end != "stays");
        if must_return && !server.wait_until(PATIENCE, |view| view.sessions >= 2) {
            lacks.push("it has not returned".to_owned());
        }
        let until = Instant::now() + PATIENCE;
        if let Some(rule) = &self.rule {
            while refused(admin, rule) == 0 {
                if Instant::now() > until {
                    lacks.push(format!("nothing was refused by the rule {rule}"));
                    break;
                }
                let _: bool = server.wait_until(LOOK_EVERY, |view| !view.violations.is_empty());
            }
        }
        lacks
    }

    /// What it did more often than it may in so many seconds.
    fn excesses(&self, view: &View, writes: u64, lasted: u64) -> Vec<String> {
        // If a connection breaks before its call, the library opens another for the same attempt.
        let each = if self.wire.is_some() { 2 } else { 1 };
        let sessions_max = each * (3 + lasted / SESSIONS_EVERY + 1);
        let lists_max = KINDS * (1 + lasted / LISTS_EVERY + 1);
        let counts = [
            ("sessions", view.sessions, sessions_max),
            ("lists", view.lists, lists_max),
            ("writes", writes, 0),
        ];
        let excesses = counts.into_iter().filter(|(_, found, max)| found > max);
        excesses
            .map(|(what, found, max)| format!("{found} {what} in {lasted} s, at most {max}"))
            .collect()
    }
}

impl Found {
    /// Notes the exceeded limits of the cell.
    fn bound(&mut self, cell: &Cell) {
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        let bounds = [
            ("memory in MB", self.memory_mb as f64, cell.memory_mb as f64),
            ("log in KB", self.log_kb as f64, cell.log_kb as f64),
        ];
        self.faults.extend(beyond(&bounds));
        if !cell.ends.iter().any(|end| end == self.end) {
            self.faults
                .push(format!("it {}, and not {:?}", self.end, cell.ends));
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            end,
            sessions,
            lists,
            memory_mb,
            processor_s,
            log_kb,
            took,
            faults: _,
        } = self;
        write!(
            f,
            "{end} | {sessions} sessions | {lists} lists | {memory_mb} MB | {processor_s:.1} s | {log_kb} KB | {:.1} s",
            took.as_secs_f64()
        )
    }
}
