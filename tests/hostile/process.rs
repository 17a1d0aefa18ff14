//! A server as a separate process, and its measurements from outside.

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
    usage::peak_mb,
};

use crate::{
    guard::{Guard, Proof, Who},
    target::Target,
};

/// The timeout for a process to become idle, which only a spinning process reaches.
const REST_WITHIN: Duration = Duration::from_mins(3);
/// The number of consecutive looks that must find a process idle, and the interval between them.
const LOOKS: u32 = 3;
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Port {
    Grpc,
    Admin,
}

pub(crate) struct Process {
    running: Running,
    grpc: String,
    admin: String,
    guard: Option<Arc<Guard>>,
}

impl Process {
    /// Starts a server on free ports, with authentication if there is a proof.
    pub(crate) fn guarded(flags: &[String], proof: Option<Proof>) -> Self {
        let guard = proof.map(|proof| Arc::new(Guard::new(proof)));
        let mut command = Command::new(binaries::folder().join("decree-server"));
        for port in ["--listen", "--admin"] {
            command.args([port, "127.0.0.1:0"]);
        }
        command.args(guard.iter().flat_map(|guard| guard.flags()));
        command.args(flags);
        let running = Running::start(command, Voice::Stderr);
        let address = |listener| running.address(listener);
        Self {
            grpc: address("grpc"),
            admin: address("admin"),
            guard,
            running,
        }
    }

    /// The address of a port.
    pub(crate) fn address(&self, port: Port) -> &str {
        match port {
            Port::Grpc => &self.grpc,
            Port::Admin => &self.admin,
        }
    }

    /// The gRPC address, with the credentials of this name.
    pub(crate) fn target(&self, name: &str) -> Target {
        Target::new(&self.grpc, self.guard.clone()).by(&self.who(name))
    }

    /// The credentials of this name.
    pub(crate) fn who(&self, name: &str) -> Who {
        let guard = self.guard.as_ref();
        guard.map_or_else(Who::default, |guard| guard.who(name))
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// The size of its log, in KB.
    pub(crate) fn log_kb(&self) -> u64 {
        self.running.bytes() / 1024
    }

    /// A page of the admin port, or why there is none.
    pub(crate) fn page(&self, path: &str) -> Result<String, String> {
        admin::get(&self.admin, path).map_err(|error| error.to_string())
    }

    /// Sends SIGTERM, and waits until the process ends cleanly; or returns what it did instead.
    pub(crate) fn stop(self) -> Result<(), String> {
        self.running.terminate();
        let tail = self.running.tail();
        let status = self.running.wait();
        match status.code() {
            Some(0) => Ok(()),
            _ => Err(format!("it ended with {status}: {}", tail.join("\n"))),
        }
    }
}

/// The peak memory of a process, in MiB; 0 if it is gone.
pub(crate) fn peak_mib(process: u32) -> u64 {
    (peak_mb(process) * 1e6) as u64 >> 20
}

/// Waits until all threads of a process wait at once. Returns whether they do: a thread that spins never waits, however little
/// processor time it gets.
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

/// Whether no thread of a process runs or is about to; true if the process is gone.
fn is_at_rest(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        !state.trim_start().starts_with('R')
    })
}
