//! Tier: harmful peers against the shipped programs.
//!
//! # Theory of operation
//! The matrix is data: `cells/*.toml`, a [`cells::Cell`] for each attack, or for several with the same end. Each cell has a separate server process, with a harmless
//! session beside the attack ([`neighbour`]).
//!
//! ```text
//! start server ─▶ neighbour is served ─▶ attack ─▶ a newcomer is served, /readyz says so ─▶ memory, log ─▶ SIGTERM
//!                        └── again and again: a pod is lost, a batch replaces it ──┘
//! ```
//! A cell has the allowed ends of its streams, calls or connections, and limits: the size of the answers, the peak of the
//! process's memory, the size of its log. In every cell, the process must live, become idle, and end with 0 on SIGTERM. The
//! neighbor's session must live too, and is served in its turn: the server works little for others between an event and its batch.
//!
//! An attack is one of three kinds: sessions by their frames ([`script`]), unary calls and watches ([`calls`]), and connections by
//! their bytes ([`connections`]): other protocols, invalid HTTP/2 and TLS. A cell with a `proof` has a server with authentication
//! ([`guard`]), for which its neighbor and newcomers have credentials. In a cell with `keeps`, another peer acts repeatedly during
//! the attack, and once more while the attack's connections are held ([`others`]). To add a cell, write it into a file.
//!
//! No cell fails because of a slow machine. Several cells run at a time, and the server's deadlines are long unless they are the
//! subject of the cell; waits have a limit of minutes. The waits of the neighbor, the processor time and the time to the end of
//! the process are [reported](report). With `DECREE_HOSTILE_MEASURED`, they are compared with the cell's goals: then cells with a
//! goal for the p99 run alone, and the other cells two at a time.
//!
//! A second matrix has malicious servers against the agent: [`agents`].
//!
//! ```sh
//! cargo test -p tests --test hostile
//! DECREE_HOSTILE_CELL=hello cargo test -p tests --test hostile -- --nocapture    # those with such a name, or of such a file
//! DECREE_HOSTILE_MEASURED=1 cargo test --release -p tests --test hostile -- --nocapture
//! ```

mod agents;
mod calls;
mod cells;
mod connections;
mod frames;
mod guard;
mod neighbour;
mod others;
mod process;
mod report;
mod run;
mod script;
mod seen;
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

/// The number of concurrent cells: many of them wait for a deadline.
const LANES: usize = 6;
/// The number of concurrent cells without measurements, in a run with measurements.
const LANES_MEASURED: usize = 2;
/// The number of concurrent agents with malicious servers: most of them wait most of the time.
const AGENT_LANES: usize = 12;
/// The number of concurrent measured agents.
const AGENT_LANES_MEASURED: usize = 4;

/// Held during measurements, so that nothing disturbs them.
static QUIET: Mutex<()> = Mutex::new(());

#[test]
fn no_cell_harms() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = cells::read("cells").into_iter();
    let chosen = all
        .filter(|(group, cell): &(String, Cell)| *group == wanted || cell.name.contains(&wanted));
    let mut chosen: Vec<_> = chosen.map(|(_, cell)| cell).collect();
    // The cells with the longest waits come first, so that no lane waits alone at the end.
    chosen.sort_by_key(|cell| !cell.deadlines);
    let found = if report::is_measured() {
        measure(chosen)
    } else {
        run_all(&chosen, LANES, Watch::Unmeasured)
    };
    let faults = found
        .iter()
        .map(|(cell, found)| (&cell.name, &found.faults));
    no_faults("cells", faults.collect());
}

/// Fails if a cell has faults, and names them all.
fn no_faults(what: &str, found: Vec<(&String, &Vec<String>)>) {
    let count = found.len();
    let harmed = found.into_iter().filter(|(_, faults)| !faults.is_empty());
    let harmed = harmed.map(|(name, faults)| format!("{name}: {}", faults.join("; ")));
    let harmed: Vec<_> = harmed.collect();
    eprintln!("{count} {what}, {} harmed", harmed.len());
    assert!(harmed.is_empty(), "{harmed:#?}");
}

/// Runs cells without other cells of this tier on the machine, and prints the measurements.
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
    let all = cells::read::<agents::Cell>("agents").into_iter();
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
    let faults = found
        .iter()
        .map(|(cell, found)| (&cell.name, &found.faults));
    no_faults("agents", faults.collect());
}

fn run_all(cells: &[Cell], lanes: usize, watch: Watch) -> Vec<(Cell, Found)> {
    in_lanes(cells, lanes, |cell| {
        let found = run::run(cell, watch);
        eprintln!("{} | {found} {:?}", cell.name, found.faults);
        (cell.clone(), found)
    })
}

/// Runs `act` on each item, `lanes` at a time.
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
    let cells = cells::read::<Cell>("cells").into_iter();
    let agents = cells::read::<agents::Cell>("agents").into_iter();
    let names = cells.map(|(_, cell)| cell.name);
    let names: Vec<_> = names.chain(agents.map(|(_, cell)| cell.name)).collect();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
}
