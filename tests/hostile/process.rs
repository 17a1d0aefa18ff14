//! A server as a process of its own, and what can be measured of it from outside.

use std::{
    fs,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tests::{
    admin, binaries,
    running::{Running, Voice},
};

use crate::{
    guard::{Guard, Proof, Who},
    target::Target,
};

/// How long a process may take to come to rest: only one that spins takes as long.
const REST_WITHIN: Duration = Duration::from_mins(3);
/// How often in a row a process must be found at rest, and how long after each other.
const LOOKS: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// One of the server's ports.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Port {
    Grpc,
    Admin,
    Probe,
}

/// A server.
pub(crate) struct Process {
    running: Running,
    grpc: String,
    admin: String,
    probe: String,
    guard: Option<Arc<Guard>>,
}

// === impl Process ===

impl Process {
    /// Starts a server on free ports that asks for no proof.
    pub(crate) fn start(flags: &[String]) -> Self {
        Self::guarded(flags, None)
    }

    /// Starts a server on free ports that asks its peers who they are, if it is to.
    pub(crate) fn guarded(flags: &[String], proof: Option<Proof>) -> Self {
        let guard = proof.map(|proof| Arc::new(Guard::new(proof)));
        let mut command = Command::new(binaries::folder().join("decree-server"));
        for port in ["--listen", "--admin", "--probe"] {
            command.args([port, "127.0.0.1:0"]);
        }
        command.args(guard.iter().flat_map(|guard| guard.flags()));
        command.args(flags);
        let running = Running::start(command, Voice::Stderr);
        let address = |listener| running.address(listener);
        Self {
            grpc: address("grpc"),
            admin: address("admin"),
            probe: address("probe"),
            guard,
            running,
        }
    }

    /// Returns where a port is.
    pub(crate) fn address(&self, port: Port) -> &str {
        match port {
            Port::Grpc => &self.grpc,
            Port::Admin => &self.admin,
            Port::Probe => &self.probe,
        }
    }

    /// Returns where decisions are made, reached by the one of this name.
    pub(crate) fn target(&self, name: &str) -> Target {
        Target::new(&self.grpc, self.guard.clone()).by(&self.who(name))
    }

    /// Returns what the one of this name proves.
    pub(crate) fn who(&self, name: &str) -> Who {
        let guard = self.guard.as_ref();
        guard.map_or_else(Who::default, |guard| guard.who(name))
    }

    /// Returns the process's number.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Returns the most memory that the process has had, in MB.
    pub(crate) fn memory_mb(&self) -> u64 {
        memory_mb(self.running.id())
    }

    /// Returns how much it has logged, in KB.
    pub(crate) fn log_kb(&self) -> u64 {
        self.running.bytes() / 1024
    }

    /// Returns a page of the admin port, or why there is none.
    pub(crate) fn page(&self, path: &str) -> Result<String, String> {
        admin::get(&self.admin, path).map_err(|error| error.to_string())
    }

    /// Sends SIGTERM, and returns how long the process took to end in order; or what it did instead.
    pub(crate) fn stop(self) -> Result<Duration, String> {
        let start = Instant::now();
        self.running.terminate();
        let tail = self.running.tail();
        let status = self.running.wait();
        match status.code() {
            Some(0) => Ok(start.elapsed()),
            _ => Err(format!("it ended with {status}: {}", tail.join("\n"))),
        }
    }
}

/// Returns the most memory that a process has had, in MB; 0 if it is gone.
pub(crate) fn memory_mb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mut lines = status
        .lines()
        .filter_map(|line| line.strip_prefix("VmHWM:"));
    let kb = lines
        .next()
        .and_then(|rest| rest.trim().strip_suffix(" kB"));
    kb.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Returns what a process has taken of a processor, in seconds; 0 if it is gone.
pub(crate) fn processor_s(process: u32) -> f64 {
    /// The clock ticks of a second, as Linux tells them to processes.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may have blanks in it; what follows it begins with the state, the third field.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = rest.split_whitespace().skip(11).take(2);
    fields.filter_map(|it| it.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// Waits until all threads of a process wait for something at once. Returns whether they do: a thread that spins never waits, however little
/// of a processor it is given.
#[expect(
    clippy::disallowed_methods,
    reason = "the kernel tells nobody when a process comes to rest"
)]
pub(crate) fn comes_to_rest(process: u32) -> bool {
    let until = Instant::now() + REST_WITHIN;
    let mut found = 0;
    while found < LOOKS && Instant::now() < until {
        found = if is_at_rest(process) { found + 1 } else { 0 };
        thread::sleep(LOOK_EVERY);
    }
    found == LOOKS
}

/// Returns whether no thread of a process runs or is about to; one that is gone does not.
fn is_at_rest(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        !state.trim_start().starts_with('R')
    })
}
