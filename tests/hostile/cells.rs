//! The matrix as data: `cells/*.toml`.

use std::{collections::BTreeSet, fs};

use serde::Deserialize;
use tests::binaries;

use crate::{
    calls::Calls, guard::Proof, handshakes::Handshakes, http2::Http2, script::Script,
    sockets::Sockets,
};

/// What a process may use at most, in MB: what the manifests grant it.
const MEMORY_MB: u64 = 512;
/// What a process may log in answer to a cell, in KB.
const LOG_KB: u64 = 1024;

/// One way to harm a program, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// Unique; what is tried, in a few words.
    pub(crate) name: String,
    /// Flags of the server beside those of every cell.
    #[serde(default)]
    pub(crate) flags: Vec<String>,
    /// How the server's peers prove who they are; absent where it asks for no proof and speaks plain text.
    pub(crate) proof: Option<Proof>,
    /// What is sent, one after the other; what is held is held meanwhile.
    pub(crate) attacks: Vec<Attack>,
    /// What somebody else does meanwhile and afterwards, by its name in `others.toml`, and must not be kept from.
    #[serde(default)]
    pub(crate) keeps: Vec<String>,
    /// How each stream, call or connection of the attack may end.
    pub(crate) ends: BTreeSet<String>,
    /// What the attack may receive in all, in KB.
    #[serde(default = "answer_kb")]
    pub(crate) answer_kb: u64,
    /// The peak of the process's memory, in MB.
    #[serde(default = "memory_mb")]
    pub(crate) memory_mb: u64,
    /// What the process may log, in KB.
    #[serde(default = "log_kb")]
    pub(crate) log_kb: u64,
    /// The goal for the 99th percentile of the neighbour's time from event to batch, in ms; absent where it is not measured. Three times
    /// what the neighbour takes alone meets it in any case.
    pub(crate) p99_ms: Option<f64>,
    /// The goal for the time from SIGTERM to the end of the process, in seconds.
    #[serde(default = "stop_s")]
    pub(crate) stop_s: f64,
    /// Whether a deadline of the server ends what is tried: its deadlines are those of every server then. Elsewhere they are so long that
    /// a slow attacker is no other attacker.
    #[serde(default)]
    pub(crate) deadlines: bool,
    /// What does not hold yet. Such a cell runs only if it is named, and the document says so.
    pub(crate) fails: Option<String>,
}

/// How a cell harms.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Attack {
    /// Sessions that follow a script.
    Session(Script),
    /// Calls, each with one message or whatever else.
    Calls(Calls),
    /// Connections that speak no HTTP/2, or not only.
    Sockets(Sockets),
    /// Connections that speak HTTP/2 frame by frame.
    Http2(Http2),
    /// Handshakes of TLS.
    Handshakes(Handshakes),
}

#[derive(Deserialize)]
struct File {
    cell: Vec<Cell>,
}

/// Deadlines of the server that a slow attacker meets: minutes, for which a peer that does nothing is waited for.
const LONG: [(&str, &str); 3] = [
    ("--hello-deadline", "300s"),
    ("--deadline", "300s"),
    ("--heartbeat-interval", "60s"),
];

// === impl Cell ===

impl Cell {
    /// Returns the flags of its server. Where the attacker is measured, the deadlines are those of every server.
    pub(crate) fn flags(&self, measured: bool) -> Vec<String> {
        let mut flags = self.flags.clone();
        if measured || self.deadlines {
            return flags;
        }
        for (flag, long) in LONG {
            if !self.flags.iter().any(|own| own.starts_with(flag)) {
                flags.push(format!("{flag}={long}"));
            }
        }
        flags
    }
}

/// Returns all cells of the files of this name, or of all.
pub(crate) fn all() -> Vec<(String, Cell)> {
    let folder = binaries::checkout().join("tests/hostile/cells");
    let entries = fs::read_dir(folder).expect("the cells are in the checkout");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    let cells = paths.into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).expect("a file of cells can be read");
        let file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let group = path.file_stem().and_then(|stem| stem.to_str());
        let group = group.expect("a name").to_owned();
        file.cell.into_iter().map(move |cell| (group.clone(), cell))
    });
    cells.collect()
}

fn answer_kb() -> u64 {
    64
}

fn memory_mb() -> u64 {
    MEMORY_MB
}

fn log_kb() -> u64 {
    LOG_KB
}

fn stop_s() -> f64 {
    5.0
}
