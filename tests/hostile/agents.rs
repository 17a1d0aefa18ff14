//! Malicious servers against the shipped agent: `agents/*.toml`, a [`Cell`] for each way.
//!
//! ```text
//! malicious server ─▶ start agent on an embedded cluster ─▶ speech or bytes, for some seconds ─▶ /livez ─▶ objects ─▶ SIGTERM
//! ```
//! The agent must live, keep its pace, stay within its limits of memory and log, wait whenever it is idle, and end with 0. Nothing
//! in its log may steer a terminal. Its stream shows its effects on its cluster ([`Witness`]): only the desired
//! pods of ReplicaSets. In some cells, a stranger on the machine sends requests to its admin port. Its processor time, and the
//! time to its end, are goals.

mod liar;
mod speech;
mod wire;
mod witness;

use std::{
    collections::{BTreeMap, BTreeSet},
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
};
use tokio::runtime::Runtime;

use self::{
    liar::{MaliciousServer, cluster},
    speech::Speech,
    wire::{Wire, WireServer},
    witness::Witness,
};
use crate::{
    guard::{Guard, Proof},
    process::{comes_to_rest, memory_mb, processor_s},
    run::beyond,
    seen::Seen,
    sockets::Sockets,
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

/// One kind of malicious server, and the required result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// A unique, short description of the server's acts.
    pub(crate) name: String,
    /// The frames of its sessions.
    speech: Option<Speech>,
    /// Or its bytes below sessions.
    wire: Option<Wire>,
    /// The requests to the agent's admin port meanwhile.
    #[serde(default)]
    asked: Vec<Sockets>,
    /// The allowed ends of those connections.
    #[serde(default)]
    answers: BTreeSet<String>,
    /// The minimum duration, in seconds.
    #[serde(default = "seconds")]
    pub(crate) seconds: u64,
    /// The allowed reactions of the agent: it `stays` in its session, `returns` in others, or has `none`.
    ends: Vec<String>,
    /// The rule that refuses operations, if one does.
    rule: Option<String>,
    /// The maximum number of writes to the cluster.
    #[serde(default)]
    writes: u64,
    /// The peak of the process's memory, in MB.
    #[serde(default = "memory_max")]
    memory_mb: u64,
    /// The goal for the processor time of the process, in seconds.
    #[serde(default = "processor_max")]
    processor_s: f64,
    /// The maximum size of the process's log, in KB.
    #[serde(default = "log_max")]
    log_kb: u64,
    /// The goal for the time from SIGTERM to the end of the process, in seconds.
    #[serde(default = "stop_max")]
    stop_s: f64,
}

/// The result of a cell.
pub(crate) struct Found {
    end: &'static str,
    sessions: u64,
    lists: u64,
    writes: u64,
    pub(crate) memory_mb: u64,
    pub(crate) processor_s: f64,
    log_kb: u64,
    pub(crate) stop_s: f64,
    took: Duration,
    /// The violated requirements.
    pub(crate) faults: Vec<String>,
    /// The missed goals.
    pub(crate) missed: Vec<String>,
}

enum Server {
    Speaks(MaliciousServer),
    Sends(WireServer),
}

#[derive(Deserialize)]
struct File {
    cell: Vec<Cell>,
}

fn seconds() -> u64 {
    2
}

fn memory_max() -> u64 {
    128
}

fn processor_max() -> f64 {
    4.0
}

fn log_max() -> u64 {
    64
}

fn stop_max() -> f64 {
    5.0
}

/// All cells, by the names of their files.
pub(crate) fn all() -> BTreeMap<String, Vec<Cell>> {
    let folder = binaries::checkout().join("tests/hostile/agents");
    let entries = fs::read_dir(folder).expect("the cells are in the checkout");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let files = paths.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    files.map(|path| (stem(&path), read(&path))).collect()
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.expect("a name").to_owned()
}

fn read(path: &Path) -> Vec<Cell> {
    let text = fs::read_to_string(path).expect("a file of cells can be read");
    let file: Result<File, _> = toml::from_str(&text);
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .cell
}

pub(crate) fn run(cell: &Cell) -> Found {
    let start = Instant::now();
    let folder = TempDir::new().expect("a folder");
    let guard = Guard::new(Proof::Tokens);
    let server = Server::start(cell, &guard);
    let agent = agent(cell, &server, &guard, folder.path());
    let admin = agent.address("admin");
    let mut faults = Vec::new();
    if !server.has_begun(cell) {
        faults.push("it has not begun".to_owned());
    }
    let before = writes(&admin);
    let seen = ask(&cell.asked, &admin);
    if !seen.ends.is_subset(&cell.answers) {
        faults.push(format!("answers {:?}, not {:?}", seen.ends, cell.answers));
    }
    server.watch(Duration::from_secs(cell.seconds));
    faults.extend(server.lacks(cell, &admin));
    let witness = server.witness();
    let sessions = server.sessions(&witness);
    // From before the first session, so that every session counted falls into the measured time.
    let lasted = start.elapsed().as_secs() + 1;
    faults.extend(
        admin::get(&admin, "/livez")
            .err()
            .map(|it| format!("/livez: {it}")),
    );
    faults.extend(judge(&server, &witness, sessions, lasted));
    faults.extend(steering(&agent));
    if !comes_to_rest(agent.id()) {
        faults.push("it never waits for anything".to_owned());
    }
    let mut found = Found {
        end: server.end(sessions),
        sessions,
        lists: witness.lists,
        writes: writes(&admin) - before,
        memory_mb: memory_mb(agent.id()),
        processor_s: processor_s(agent.id()),
        log_kb: agent.bytes() / 1024,
        stop_s: 0.0,
        took: Duration::ZERO,
        faults,
        missed: Vec::new(),
    };
    let stop = Instant::now();
    agent.terminate();
    let tail = agent.tail();
    match agent.wait().code() {
        Some(0) => found.stop_s = stop.elapsed().as_secs_f64(),
        _ => found
            .faults
            .push(format!("it does not end with 0: {}", tail.join("\n"))),
    }
    found.bound(cell);
    found.took = start.elapsed();
    found
}

/// The number of operations that the agent has refused by a rule.
fn refused(admin: &str, rule: &str) -> u64 {
    let metric = format!("decree_agent_operations_refused_total{{rule=\"{rule}\"}}");
    admin::metric(admin, &metric)
}

/// Sends the requests to the admin port in order. Held connections stay open until the result is dropped.
fn ask(asked: &[Sockets], admin: &str) -> Seen {
    let mut seen = Seen::default();
    if !asked.is_empty() {
        let runtime = Runtime::new().expect("a runtime");
        for sockets in asked {
            seen.add(runtime.block_on(sockets.run(admin)));
        }
    }
    seen
}

/// The faults in the agent's acts within `lasted` seconds.
fn judge(server: &Server, witness: &Witness, sessions: u64, lasted: u64) -> Vec<String> {
    let mut faults = witness.violations.clone();
    faults.dedup();
    let mut most = |what: &str, found: u64, max: u64| {
        if found > max {
            faults.push(format!("{found} {what} in {lasted} s, at most {max}"));
        }
    };
    // If a connection breaks before its call, the library opens another for the same attempt.
    let each = match server {
        Server::Speaks(_) => 1,
        Server::Sends(_) => 2,
    };
    let sessions_max = 3 + lasted / SESSIONS_EVERY + 1;
    most("sessions", sessions, each * sessions_max);
    let lists = witness.lists;
    most("lists", lists, KINDS * (1 + lasted / LISTS_EVERY + 1));
    faults
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

/// Starts the agent on an embedded cluster.
fn agent(cell: &Cell, server: &Server, guard: &Guard, folder: &Path) -> Running {
    let manifest = folder.join("cluster.yaml");
    fs::write(&manifest, cluster()).expect("it can be written");
    let mut command = Command::new(binaries::folder().join("decree-agent"));
    command.args(["--cluster", "fake", "--admin", "127.0.0.1:0", "--manifest"]);
    command.arg(manifest);
    let address = server.address();
    match cell
        .wire
        .as_ref()
        .and_then(|wire| wire.certificate.as_ref())
    {
        None => command.args(["--server", &format!("http://{address}")]),
        Some(_) => command
            .args(["--server", &format!("https://{address}")])
            .args(["--tls-server-name", "localhost"])
            .arg("--tls-ca")
            .arg(guard.ca()),
    };
    Running::start(command, Voice::Stderr)
}

// === impl Server ===

impl Server {
    fn start(cell: &Cell, guard: &Guard) -> Self {
        match (cell.speech.clone(), cell.wire.clone()) {
            (Some(speech), None) => Self::Speaks(MaliciousServer::start(speech)),
            (None, Some(wire)) => Self::Sends(WireServer::start(wire, guard)),
            _ => panic!("{}: a server speaks or sends", cell.name),
        }
    }

    fn address(&self) -> String {
        match self {
            Self::Speaks(server) => server.address(),
            Self::Sends(server) => server.address(),
        }
    }

    /// Waits until the server turns malicious: at the first session, or after the first pods if it starts honestly.
    fn has_begun(&self, cell: &Cell) -> bool {
        let honest = cell.speech.as_ref().is_some_and(Speech::settles);
        match self {
            Self::Speaks(server) => {
                let begun = |witness: &Witness| {
                    let begun = if honest {
                        witness.is_settled()
                    } else {
                        witness.sessions > 0
                    };
                    begun.then_some(())
                };
                server.wait_for(PATIENCE, begun).is_some()
            }
            Self::Sends(server) => server.wait_for_connection(PATIENCE),
        }
    }

    /// Waits for this time, or until a violation.
    fn watch(&self, time: Duration) {
        match self {
            Self::Speaks(server) => {
                let harm = |witness: &Witness| (!witness.violations.is_empty()).then_some(());
                let _: Option<()> = server.wait_for(time, harm);
            }
            Self::Sends(server) => server.let_be(time),
        }
    }

    /// Waits for the required results of a cell, which may be late on a slow machine. Returns the missing results.
    fn lacks(&self, cell: &Cell, admin: &str) -> Vec<String> {
        let mut lacks = Vec::new();
        // A refused agent also proves itself by another attempt.
        let must_return = cell.ends.iter().all(|end| end != "stays");
        if must_return && !self.wait_until(|| self.sessions(&self.witness()) >= 2) {
            lacks.push("it has not returned".to_owned());
        }
        if let Some(rule) = &cell.rule
            && !self.wait_until(|| refused(admin, rule) > 0)
        {
            lacks.push(format!("nothing was refused by the rule {rule}"));
        }
        lacks
    }

    /// Waits for a condition outside the server. Returns whether it holds.
    fn wait_until(&self, mut is_so: impl FnMut() -> bool) -> bool {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            if Instant::now() > until {
                return false;
            }
            self.watch(LOOK_EVERY);
        }
        true
    }

    fn witness(&self) -> Witness {
        match self {
            Self::Speaks(server) => server.witness(),
            Self::Sends(_) => Witness::default(),
        }
    }

    fn sessions(&self, witness: &Witness) -> u64 {
        match self {
            Self::Speaks(_) => witness.sessions,
            Self::Sends(server) => server.connections(),
        }
    }

    fn end(&self, sessions: u64) -> &'static str {
        match (self, sessions) {
            (Self::Sends(server), _) if server.is_refused() => "none",
            (_, 0 | 1) => "stays",
            _ => "returns",
        }
    }
}

// === impl Found ===

impl Found {
    /// Notes the exceeded limits of the cell, and the missed goals.
    fn bound(&mut self, cell: &Cell) {
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
        let bounds = [
            ("writes", self.writes as f64, cell.writes as f64),
            ("memory in MB", self.memory_mb as f64, cell.memory_mb as f64),
            ("log in KB", self.log_kb as f64, cell.log_kb as f64),
        ];
        self.faults.extend(beyond(&bounds));
        if !cell.ends.iter().any(|end| end == self.end) {
            self.faults
                .push(format!("it {}, and not {:?}", self.end, cell.ends));
        }
        self.missed = beyond(&[
            ("stop in s", self.stop_s, cell.stop_s),
            ("processor in s", self.processor_s, cell.processor_s),
        ]);
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            end,
            sessions,
            lists,
            writes,
            memory_mb,
            processor_s,
            log_kb,
            stop_s,
            took,
            faults: _,
            missed: _,
        } = self;
        write!(
            f,
            "{end} | {sessions} sessions | {lists} lists | {writes} writes | {memory_mb} MB | {processor_s:.1} s | {log_kb} KB | {stop_s:.1} s | {:.1} s",
            took.as_secs_f64()
        )
    }
}

/// The table of the cells of a file.
pub(crate) fn table(group: &str, cells: &[Cell]) -> String {
    let mut text = format!("\n### agent, `{group}`: {} cells\n\n", cells.len());
    text += "| what the server does | what the agent does | refused by rule | memory | processor | log |\n";
    text += "| --- | --- | --- | --- | --- | --- |\n";
    for cell in cells {
        text += &format!(
            "| {} | {} | {} | {} MB | {} s | {} KB |\n",
            cell.name,
            cell.ends.join(", "),
            cell.rule.as_deref().unwrap_or_default(),
            cell.memory_mb,
            cell.processor_s,
            cell.log_kb,
        );
    }
    text
}
