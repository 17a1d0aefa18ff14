//! Servers that turned bad, against the agent as it is shipped: `agents/*.toml`, a [`Cell`] for each way.
//!
//! ```text
//! malicious server ─▶ start agent on an embedded cluster ─▶ speech or bytes, for so many seconds ─▶ /livez ─▶ what there is ─▶ SIGTERM
//! ```
//! The agent must live and say so, keep its pace, stay within its bounds of memory and log, wait whenever it has nothing to do, and end with 0.
//! Nothing that it logs may steer a terminal. What it streams of its cluster shows what it has done there ([`Witness`]): nothing but what a ReplicaSet wants. Or a stranger on the machine
//! asks its admin port. What it may take of a processor, and how soon it must end, are goals.

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

/// How long anything awaited may take: only what hangs takes as long.
const PATIENCE: Duration = Duration::from_mins(3);
/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often sessions may begin beyond the first three, in seconds.
const SESSIONS_EVERY: u64 = 1;
/// How often lists of a kind may begin beyond the first, in seconds.
const LISTS_EVERY: u64 = 10;
/// How long a text in a line of the log may be.
const LINE_MAX: usize = 12 * 1024;
/// Pods and ReplicaSets.
const KINDS: u64 = 2;

/// One way of a server to be bad, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// Unique; what the server does, in a few words.
    pub(crate) name: String,
    /// What it says in sessions.
    speech: Option<Speech>,
    /// Or what it sends below them.
    wire: Option<Wire>,
    /// What the agent's admin port is asked meanwhile.
    #[serde(default)]
    asked: Vec<Sockets>,
    /// How those connections may end.
    #[serde(default)]
    answers: BTreeSet<String>,
    /// For how many seconds at least.
    #[serde(default = "seconds")]
    pub(crate) seconds: u64,
    /// How the agent may take it: it `stays` in its session, `returns` in others, or has `none`.
    ends: Vec<String>,
    /// The rule by which operations are refused, where they are.
    rule: Option<String>,
    /// How many writes to the cluster it may lead to.
    #[serde(default)]
    writes: u64,
    /// The peak of the process's memory, in MB.
    #[serde(default = "memory_max")]
    memory_mb: u64,
    /// The goal for what the process takes of a processor, in seconds.
    #[serde(default = "processor_max")]
    processor_s: f64,
    /// What the process may log, in KB.
    #[serde(default = "log_max")]
    log_kb: u64,
    /// The goal for the time from SIGTERM to the end of the process, in seconds.
    #[serde(default = "stop_max")]
    stop_s: f64,
}

/// What was found of a cell.
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
    /// What is not as it must be.
    pub(crate) faults: Vec<String>,
    /// The goals that are missed.
    pub(crate) missed: Vec<String>,
}

/// The server of a cell.
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

/// Returns all cells, by the names of their files.
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

/// Runs a cell.
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
    // From before the first session: what began is counted before the time in which it did.
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

/// Returns how often the agent has refused an operation by a rule.
fn refused(admin: &str, rule: &str) -> u64 {
    let metric = format!("decree_agent_operations_refused_total{{rule=\"{rule}\"}}");
    admin::metric(admin, &metric)
}

/// Asks the admin port, one thing after the other; what is held is held until what was seen is dropped.
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

/// Returns what is wrong with what the agent did within so many seconds.
fn judge(server: &Server, witness: &Witness, sessions: u64, lasted: u64) -> Vec<String> {
    let mut faults = witness.violations.clone();
    faults.dedup();
    let mut most = |what: &str, found: u64, max: u64| {
        if found > max {
            faults.push(format!("{found} {what} in {lasted} s, at most {max}"));
        }
    };
    // Where a connection breaks before the call on it, the library makes another for the same try.
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

/// Returns what the agent has logged that could steer a terminal, or is longer than a line of it may be.
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

/// Returns how many writes to the cluster the agent has made.
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

    /// Waits until the server turns bad: at the first session, or once pods are there if it begins honestly.
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

    /// Lets the server be bad for so long, or until it has led to what must not be.
    fn watch(&self, time: Duration) {
        match self {
            Self::Speaks(server) => {
                let harm = |witness: &Witness| (!witness.violations.is_empty()).then_some(());
                let _: Option<()> = server.wait_for(time, harm);
            }
            Self::Sends(server) => server.let_be(time),
        }
    }

    /// Waits for what must come of a cell, however late on a slow machine. Returns what has not come.
    fn lacks(&self, cell: &Cell, admin: &str) -> Vec<String> {
        let mut lacks = Vec::new();
        // Whoever is refused is known by trying again, too.
        let must_return = cell.ends.iter().all(|end| end != "stays");
        if must_return && !self.wait_for_sessions(2) {
            lacks.push("it has not returned".to_owned());
        }
        if let Some(rule) = &cell.rule
            && !self.wait_until(|| refused(admin, rule) > 0)
        {
            lacks.push(format!("nothing was refused by the rule {rule}"));
        }
        lacks
    }

    fn wait_for_sessions(&self, count: u64) -> bool {
        self.wait_until(|| self.sessions(&self.witness()) >= count)
    }

    /// Waits until a condition holds that is not the server's own. Returns whether it does.
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
    /// Notes which bounds of the cell are exceeded, and which goals are missed.
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

/// Returns the table of the cells of a file.
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
