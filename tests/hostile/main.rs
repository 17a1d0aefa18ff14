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
//! subject of the cell; waits have a limit of minutes. With `DECREE_HOSTILE_MEASURED`, each `timed` cell runs alone, and the
//! neighbor's waits are printed.
//!
//! A second matrix has malicious servers against the agent: [`agents`].
//!
//! ```sh
//! cargo test -p tests --test hostile
//! DECREE_HOSTILE_CELL=hello cargo test -p tests --test hostile -- --nocapture    # those with such a name, or of such a file
//! DECREE_HOSTILE_MEASURED=1 cargo test --release -p tests --test hostile -- --nocapture --test-threads 1
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
use run::Found;
use tests::table::quantile;

/// The number of concurrent cells, and of those beside them that wait for a deadline.
const LANES: usize = 4;
const WAITING_LANES: usize = 10;
/// The groups of cells that show how the server divides its time. They run where they are measured, or named.
const TIMED: [&str; 3] = ["simulate", "time", "turns"];
/// The number of concurrent agents with malicious servers: most of them wait most of the time.
const AGENT_LANES: usize = 12;

#[test]
fn no_cell_harms() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let is_measured = env::var_os("DECREE_HOSTILE_MEASURED").is_some();
    let has_all = is_measured || !wanted.is_empty();
    let all = cells::read::<Cell>("cells").into_iter();
    let all = all.filter(|(group, _)| has_all || !TIMED.contains(&group.as_str()));
    let chosen = all.filter(|(group, cell)| *group == wanted || cell.name.contains(&wanted));
    let chosen = chosen.map(|(_, cell)| cell);
    let (timed, others): (Vec<_>, Vec<_>) = chosen.partition(|cell| is_measured && cell.timed);
    let mut found = run_all(&timed, 1, true);
    if is_measured {
        print_worst(&found);
    }
    let (waiting, busy): (Vec<_>, Vec<_>) = others.into_iter().partition(|cell| cell.deadlines);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| run_all(&waiting, WAITING_LANES, false));
        found.extend(run_all(&busy, LANES, false));
        found.extend(waiting.join().expect("a cell does not panic"));
    });
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

/// Prints the longest waits of neighbors, which the promise limits to 50 ms at the 99th percentile and 250 ms at worst.
fn print_worst(found: &[(Cell, Found)]) {
    for (what, share) in [("p99", 0.99), ("longest wait", 1.0)] {
        let waits = found.iter().filter_map(|(cell, found)| {
            let waits = found.waits.as_ref()?;
            Some((quantile(&waits.ms, share), &cell.name))
        });
        if let Some((ms, name)) = waits.max_by(|(left, _), (right, _)| left.total_cmp(right)) {
            eprintln!("worst {what}: {ms:.1} ms, beside {name}");
        }
    }
}

#[test]
fn no_server_harms_an_agent() {
    let wanted = env::var("DECREE_HOSTILE_CELL").unwrap_or_default();
    let all = cells::read::<agents::Cell>("agents").into_iter();
    let chosen = all.filter(|(group, cell)| *group == wanted || cell.name.contains(&wanted));
    let mut chosen: Vec<_> = chosen.map(|(_, cell)| cell).collect();
    chosen.sort_by_key(|cell| Reverse(cell.seconds));
    let found = in_lanes(&chosen, AGENT_LANES, |cell| {
        let found = agents::run(cell);
        eprintln!("{} | {found} {:?}", cell.name, found.faults);
        (cell.clone(), found)
    });
    let faults = found
        .iter()
        .map(|(cell, found)| (&cell.name, &found.faults));
    no_faults("agents", faults.collect());
}

fn run_all(cells: &[Cell], lanes: usize, is_timed: bool) -> Vec<(Cell, Found)> {
    in_lanes(cells, lanes, |cell| {
        let found = run::run(cell, is_timed);
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
