//! Tier: whoever wants to do harm, against the programs as they are shipped.
//!
//! # Theory of operation
//! The matrix is data: `cells/*.toml`, a [`cells::Cell`] for each way to harm. Each cell has a server process of its own, with a
//! session beside the attack that does no harm ([`neighbour`]).
//!
//! ```text
//! start server ─▶ neighbour is served ─▶ attack ─▶ a newcomer is served, /readyz says so ─▶ memory, log ─▶ SIGTERM
//!                        └── again and again: a pod is lost, a batch replaces it ──┘
//! ```
//! A cell says how its streams, calls or connections may end, and bounds: what they may receive, the peak of the process's memory, what it
//! logs. In every cell the process must live, come to rest, and end with 0 at SIGTERM; the neighbour's session must live too, and is served
//! in its turn: the server works little for others between an event and its batch. An attack is one of five kinds, each a small language:
//! [`script`] (sessions by their frames), [`calls`] (unary calls and watches), [`sockets`] (whatever speaks no HTTP/2), [`http2`] (whatever speaks it badly),
//! [`handshakes`] (TLS). A cell with a `proof` has a server that asks its peers who they are ([`guard`]); its neighbour and newcomers have what it asks for.
//! In one that says what others `keeps`, somebody else does that again and again while the attack lasts, and once more while what it holds is held ([`others`]).
//! To add a cell, write it into a file; the table in docs/security-tests.md is made of the same data.
//!
//! No cell fails because the machine is slow. Cells run several at a time, and the server's deadlines are long unless the cell is about
//! them; what is waited for has a limit of minutes. How long the neighbour waits, how much of a processor is used and how soon the
//! process ends is [reported](report), and compared with the cell's goals, where `DECREE_HOSTILE_MEASURED` is set: then cells with a goal for the p99
//! run alone, the others two at a time.
//!
//! A second matrix is about servers that turned bad, against the agent: [`agents`].
//!
//! ```sh
//! cargo test -p tests --test hostile
//! DECREE_HOSTILE_CELL=hello cargo test -p tests --test hostile -- --nocapture    # those with such a name, or of such a file
//! DECREE_HOSTILE_MEASURED=1 cargo test --release -p tests --test hostile -- --nocapture
//! DECREE_HOSTILE_TABLE=1 cargo test -p tests --test hostile table                # writes the table
//! ```

mod agents;
mod calls;
mod cells;
mod document;
mod frames;
mod guard;
mod handshakes;
mod http2;
mod load;
mod neighbour;
mod others;
mod process;
mod report;
mod run;
mod script;
mod seen;
mod sockets;
mod stream;
mod target;

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    env,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use cells::Cell;
use run::{Found, Watch};

/// How many cells run at a time: many of them wait for a deadline.
const LANES: usize = 6;
/// How many run at a time beside nothing that is measured, where others are.
const LANES_MEASURED: usize = 2;
/// How many agents are lied to at a time: most of them wait most of the time.
const AGENT_LANES: usize = 12;
/// As many where they are measured.
const AGENT_LANES_MEASURED: usize = 4;

/// Held where something is measured, so that nothing disturbs it.
static QUIET: Mutex<()> = Mutex::new(());

#[test]
fn no_cell_harms() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = cells::all().into_iter();
    let chosen = all.filter(|(group, cell)| {
        let is_named = *group == wanted || cell.name.contains(&wanted);
        is_named && (cell.fails.is_none() || !wanted.is_empty())
    });
    let mut chosen: Vec<_> = chosen.map(|(_, cell)| cell).collect();
    // Those that wait longest come first, so that no lane waits alone at the end.
    chosen.sort_by_key(|cell| !cell.deadlines);
    let found = if report::is_measured() {
        measure(chosen)
    } else {
        run_all(&chosen, LANES, Watch::Unmeasured)
    };
    let harmed: Vec<_> = found
        .iter()
        .filter(|(_, found)| !found.faults.is_empty())
        .map(|(cell, found)| format!("{}: {}", cell.name, found.faults.join("; ")))
        .collect();
    eprintln!("{} cells, {} harmed", found.len(), harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

/// Runs cells on a machine on which nothing else of this tier runs, and prints what was measured.
fn measure(cells: Vec<Cell>) -> Vec<(Cell, Found)> {
    let _quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
    let (alone, beside): (Vec<_>, Vec<_>) =
        cells.into_iter().partition(|cell| cell.p99_ms.is_some());
    let alone_ms = run::alone();
    let watch = Watch::Measured { alone_ms };
    let mut found = run_all(&alone, 1, watch);
    found.extend(run_all(&beside, LANES_MEASURED, watch));
    report::print(&found, alone_ms);
    found
}

#[test]
fn no_server_harms_an_agent() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = agents::all().into_iter();
    let all = all.flat_map(|(group, cells)| cells.into_iter().map(move |it| (group.clone(), it)));
    let chosen = all.filter(|(group, cell)| *group == wanted || cell.name.contains(&wanted));
    let mut chosen: Vec<_> = chosen.map(|(_, cell)| cell).collect();
    chosen.sort_by_key(|cell| Reverse(cell.seconds));
    let run = |cell: &agents::Cell| {
        let found = agents::run(cell);
        eprintln!("{} | {found} {:?}", cell.name, found.faults);
        (cell.clone(), found)
    };
    let found = if report::is_measured() {
        let _quiet = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
        let found = in_lanes(&chosen, AGENT_LANES_MEASURED, run);
        report::print_agents(&found);
        found
    } else {
        in_lanes(&chosen, AGENT_LANES, run)
    };
    let harmed: Vec<_> = found
        .iter()
        .filter(|(_, found)| !found.faults.is_empty())
        .map(|(cell, found)| format!("{}: {}", cell.name, found.faults.join("; ")))
        .collect();
    eprintln!("{} servers, {} harm", chosen.len(), harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

fn run_all(cells: &[Cell], lanes: usize, watch: Watch) -> Vec<(Cell, Found)> {
    in_lanes(cells, lanes, |cell| {
        let found = run::run(cell, watch);
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
