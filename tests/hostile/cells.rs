//! The matrix as data: `cells/*.toml`.

use std::{collections::BTreeSet, fs};

use serde::{Deserialize, de::DeserializeOwned};
use tests::binaries;

use crate::{calls::Calls, connections::Connections, guard::Proof, script::Script};

/// The maximum memory of a process, in MB: the limit in the manifests.
const MEMORY_MB: u64 = 512;
/// The maximum log of a process during a cell, in KB.
pub(crate) const LOG_KB: u64 = 1024;

/// One attack on a program, and the required result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// A unique, short description of the attack.
    pub(crate) name: String,
    /// Flags of the server beside those of every cell.
    #[serde(default)]
    pub(crate) flags: Vec<String>,
    /// The required proof of identity; absent for a server in plain text without proofs.
    pub(crate) proof: Option<Proof>,
    /// Objects of the neighbor beside its ReplicaSet: the steps `pods` and `sets` of a [script](crate::script).
    #[serde(default)]
    pub(crate) neighbour: Vec<String>,
    /// The attacks, in order; held connections stay open meanwhile.
    pub(crate) attacks: Vec<Attack>,
    /// The concurrent and later acts of another peer, by their name in `others.toml`, which must succeed.
    #[serde(default)]
    pub(crate) keeps: Vec<String>,
    /// The allowed ends of each stream, call or connection of the attack.
    pub(crate) ends: BTreeSet<String>,
    /// The maximum size of all answers to the attack, in KB.
    #[serde(default = "answer_kb")]
    pub(crate) answer_kb: u64,
    /// The peak of the process's memory, in MB.
    #[serde(default = "memory_mb")]
    pub(crate) memory_mb: u64,
    /// Whether the neighbor's waits are measured where cells are: not where the attack takes the machine as well as the server.
    #[serde(default)]
    pub(crate) timed: bool,
    /// Whether a deadline of the server ends the attack: then the server has its default deadlines. In other cells, deadlines are
    /// so long that a slow attacker is not another attack.
    #[serde(default)]
    pub(crate) deadlines: bool,
}

/// A kind of attack.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Attack {
    /// Sessions that follow a script.
    Session(Script),
    /// Calls, each with one message or any other body.
    Calls(Calls),
    /// Connections by their bytes.
    Connections(Connections),
}

#[derive(Deserialize)]
struct File<T> {
    cell: Vec<T>,
}

/// Long deadlines of the server for idle peers, so that a slow attacker does not reach them.
const LONG: [(&str, &str); 3] = [
    ("--hello-deadline", "300s"),
    ("--deadline", "300s"),
    ("--heartbeat-interval", "60s"),
];

impl Cell {
    /// The flags of its server. If the cell is timed, the deadlines are the defaults.
    pub(crate) fn flags(&self, is_timed: bool) -> Vec<String> {
        let mut flags = self.flags.clone();
        if is_timed || self.deadlines {
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

/// The cells in a folder of this tier, each with the name of its file.
pub(crate) fn read<T: DeserializeOwned>(folder: &str) -> Vec<(String, T)> {
    let folder = binaries::checkout().join("tests/hostile").join(folder);
    let entries = fs::read_dir(folder).expect("the cells are in the checkout");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .collect();
    paths.sort();
    let cells = paths.into_iter().flat_map(|path| {
        let text = fs::read_to_string(&path).expect("a file of cells can be read");
        let file: Result<File<T>, _> = toml::from_str(&text);
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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
