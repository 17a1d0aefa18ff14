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
//! session too, and SIGTERM must end it with 0. An attack is one of four kinds, each a small language:
//! [`script`] (sessions by their frames), [`calls`] (unary calls and watches), [`sockets`] (whatever speaks no HTTP/2), [`http2`] (whatever speaks it badly).
//! To add a cell, write it into a file; the table in docs/security.md is made of the same data.
//!
//! Cells with a bound for the p99 run alone, the others two at a time. In a debug build only cells marked as `quick` run, and no p99 is
//! held against its bound.
//!
//! ```sh
//! cargo test --release -p tests --test hostile -- --nocapture
//! DECREE_HOSTILE_CELL=hello cargo test --release -p tests --test hostile -- --nocapture    # those with such a name, or of such a file
//! DECREE_HOSTILE_TABLE=1 cargo test -p tests --test hostile table                          # writes the table
//! ```

mod calls;
mod cells;
mod document;
mod http2;
mod load;
mod neighbour;
mod process;
mod run;
mod script;
mod seen;
mod sockets;
mod stream;
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
    let alone_ms = run::alone();
    eprintln!("the neighbour alone: p99 {alone_ms:.2} ms");
    let mut found = run_all(&alone, 1, alone_ms);
    found.extend(run_all(&beside, LANES, alone_ms));
    let harmed: Vec<_> = found
        .iter()
        .filter(|(_, found)| !found.faults.is_empty())
        .map(|(cell, found)| format!("{}: {}", cell.name, found.faults.join("; ")))
        .collect();
    eprintln!("{} cells, {} harmed", found.len(), harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

fn run_all(cells: &[Cell], lanes: usize, alone_ms: f64) -> Vec<(Cell, Found)> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = run::run(cell, alone_ms);
                    eprintln!("{} | {found} {:?}", cell.name, found.faults);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((cell.clone(), found));
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
}
