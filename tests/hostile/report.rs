//! The measurements with `DECREE_HOSTILE_MEASURED`, as tables. A missed goal is marked, and fails nothing, because times depend
//! on the machine as well as on the program.

use std::env;

use tests::table::{head, row};

use crate::{agents, cells::Cell, run};

/// Whether this run measures times, for which cells have the machine to themselves.
pub(crate) fn is_measured() -> bool {
    env::var_os("DECREE_HOSTILE_MEASURED").is_some()
}

/// Prints the measurements of the cells against the server.
pub(crate) fn print(found: &[(Cell, run::Found)], alone_ms: f64) {
    let columns = [
        "hostile",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "processor s",
        "stop s",
        "memory MB",
        "goals missed",
    ];
    let title = format!("A neighbour beside each cell; alone its p99 is {alone_ms:.1} ms");
    head(&title, &columns);
    for (cell, found) in found {
        let waits = found.waits_ms().filter(|_| cell.p99_ms.is_some());
        let waits = waits.map_or_else(|| [(); 3].map(|()| String::new()), |ms| ms.map(figure));
        let rest = [
            figure(found.processor_s),
            figure(found.stop_s),
            found.memory_mb.to_string(),
            missed(&found.missed),
        ];
        row(&[&[cell.name.clone()][..], &waits, &rest].concat());
    }
    for (what, at) in [("p99", 1), ("longest wait", 2)] {
        let waits = found.iter().filter(|(cell, _)| cell.p99_ms.is_some());
        let waits = waits.filter_map(|(cell, found)| Some((found.waits_ms()?[at], &cell.name)));
        if let Some((ms, name)) = waits.max_by(|(left, _), (right, _)| left.total_cmp(right)) {
            eprintln!("worst {what}: {ms:.1} ms, beside {name}");
        }
    }
    let count = found.iter().filter(|(_, it)| !it.missed.is_empty()).count();
    eprintln!("{count} of {} cells miss a goal", found.len());
}

/// Prints the measurements of the agents.
pub(crate) fn print_agents(found: &[(agents::Cell, agents::Found)]) {
    let columns = [
        "what the server does",
        "processor s",
        "stop s",
        "memory MB",
        "goals missed",
    ];
    head("An agent at each server", &columns);
    for (cell, found) in found {
        row(&[
            cell.name.clone(),
            figure(found.processor_s),
            figure(found.stop_s),
            found.memory_mb.to_string(),
            missed(&found.missed),
        ]);
    }
    let count = found.iter().filter(|(_, it)| !it.missed.is_empty()).count();
    eprintln!("{count} of {} agents miss a goal", found.len());
}

fn figure(figure: f64) -> String {
    format!("{figure:.1}")
}

fn missed(goals: &[String]) -> String {
    if goals.is_empty() {
        String::new()
    } else {
        format!("**{}**", goals.join("; "))
    }
}
