//! Tier: whoever wants to do harm, against the programs as they are shipped.
//!
//! # Theory of operation
//! The matrix is data: `cells/*.toml`, a [`cells::Cell`] for each way to harm. Each cell has a server process of its own, with a
//! session beside the attack that does no harm ([`neighbour`]).
//!
//! ```text
//! start server ─▶ neighbour is served ─▶ attack ─▶ a newcomer is served, /readyz says so ─▶ memory, log ─▶ SIGTERM
//!                        └──────── every 5 ms: a pod is lost, a batch replaces it ─────┘
//! ```
//! A cell says how its streams, calls or connections may end, and bounds: what they may receive, the peak of the process's memory, what it
//! logs, the neighbour's p99, and how long the process takes to end. In every cell the process must live, the neighbour's
//! session too, and SIGTERM must end it with 0. An attack is one of five kinds, each a small language:
//! [`script`] (sessions by their frames), [`calls`] (unary calls and watches), [`sockets`] (whatever speaks no HTTP/2), [`http2`] (whatever speaks it badly),
//! [`handshakes`] (TLS). A cell with a `proof` has a server that asks its peers who they are ([`guard`]); its neighbour and newcomers have what it asks for.
//! To add a cell, write it into a file; the table in docs/security.md is made of the same data.
//!
//! Cells with a bound for the p99 run alone, the others two at a time. In a debug build only cells marked as `quick` run, and no p99 is
//! held against its bound.
//!
//! A second matrix is about servers that turned bad, against the agent: [`agents`].
//!
//! ```sh
//! cargo test --release -p tests --test hostile -- --nocapture
//! DECREE_HOSTILE_CELL=hello cargo test --release -p tests --test hostile -- --nocapture    # those with such a name, or of such a file
//! DECREE_HOSTILE_TABLE=1 cargo test -p tests --test hostile table                          # writes the table
//! ```

mod agents;
mod calls;
mod cells;
mod document;
mod guard;
mod handshakes;
mod http2;
mod load;
mod neighbour;
mod process;
mod run;
mod script;
mod seen;
mod sockets;
mod stream;
mod target;
mod template;

use std::{
    collections::BTreeSet,
    env,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use cells::Cell;
use run::Found;

/// How many cells run at a time of those that measure nothing.
const LANES: usize = 2;
/// How many agents are lied to at a time: most of them wait most of the time.
const AGENT_LANES: usize = 4;

/// Held by those who measure a neighbour, and by those who would disturb them.
static QUIET: Mutex<()> = Mutex::new(());

#[test]
fn no_cell_harms() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = cells::all().into_iter();
    let chosen = all.filter(|(group, cell)| {
        let is_named = *group == wanted || cell.name.contains(&wanted);
        let is_due = cell.fails.is_none() && (cell.quick || !cfg!(debug_assertions));
        is_named && (is_due || !wanted.is_empty())
    });
    let (alone, beside): (Vec<_>, Vec<_>) = chosen
        .map(|(_, cell)| cell)
        .partition(|cell| cell.p99_ms.is_some() && !cfg!(debug_assertions));
    let quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    let alone_ms = run::alone();
    eprintln!("the neighbour alone: p99 {alone_ms:.2} ms");
    let mut found = run_all(&alone, 1, alone_ms);
    drop(quiet);
    found.extend(run_all(&beside, LANES, alone_ms));
    let harmed: Vec<_> = found
        .iter()
        .filter(|(_, found)| !found.faults.is_empty())
        .map(|(cell, found)| format!("{}: {}", cell.name, found.faults.join("; ")))
        .collect();
    eprintln!("{} cells, {} harmed", found.len(), harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

#[test]
fn no_server_harms_an_agent() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = agents::all().into_iter();
    let all = all.flat_map(|(group, cells)| cells.into_iter().map(move |it| (group.clone(), it)));
    let chosen = all.filter(|(group, cell)| *group == wanted || cell.name.contains(&wanted));
    let mut chosen: Vec<_> = chosen.map(|(_, cell)| cell).collect();
    if wanted.is_empty() && cfg!(debug_assertions) {
        // One of each file is enough for every `cargo test`.
        chosen.retain(|cell| cell.quick);
    }
    let _quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    let found = in_lanes(&chosen, AGENT_LANES, |cell| {
        let found = agents::run(cell);
        eprintln!("{} | {found} {:?}", cell.name, found.faults);
        (!found.faults.is_empty()).then(|| format!("{}: {}", cell.name, found.faults.join("; ")))
    });
    let harmed: Vec<_> = found.into_iter().flatten().collect();
    eprintln!("{} servers, {} harm", chosen.len(), harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

fn run_all(cells: &[Cell], lanes: usize, alone_ms: f64) -> Vec<(Cell, Found)> {
    in_lanes(cells, lanes, |cell| {
        let found = run::run(cell, alone_ms);
        eprintln!("{} | {found} {:?}", cell.name, found.faults);
        (cell.clone(), found)
    })
}

/// Does something with each of these, so many at a time.
fn in_lanes<T: Sync, R: Send>(of: &[T], lanes: usize, act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(one) = of.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = act(one);
                    all.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(done);
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn names_of_cells_are_unique() {
    let cells = cells::all();
    let names: BTreeSet<_> = cells.iter().map(|(_, cell)| &cell.name).collect();
    assert_eq!(names.len(), cells.len());
    let cells: Vec<_> = agents::all().into_values().flatten().collect();
    let names: BTreeSet<_> = cells.iter().map(|cell| &cell.name).collect();
    assert_eq!(names.len(), cells.len());
}
