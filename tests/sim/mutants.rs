//! The scoreboard: worlds that are broken on purpose, one fault each, and the checker that objects.

use tests::{mutants::Mutant, simulation::run, workloads::Workload};

/// How many schedules of each workload a broken world may take to be found out.
const SCHEDULES: u64 = 60;
/// The mutants that no checker can object to; docs/reliability.md says why of each.
const HARMLESS: [Mutant; 3] = [
    Mutant::TakeTimeoutForRefusal,
    Mutant::AnswerTwice,
    Mutant::ApplyTwice,
];

/// The run in which a checker objected.
struct Objection {
    checker: &'static str,
    workload: Workload,
    seed: u64,
}

/// `cargo test -p tests --test sim scoreboard -- --nocapture` prints it.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "docs/reliability.md holds what it prints"
)]
fn scoreboard_of_mutants() {
    let mut survivors = Vec::new();
    println!("| mutant | caught by | workload | seed |\n| --- | --- | --- | --- |");
    for mutant in Mutant::ALL {
        match first_objection(mutant) {
            Some(Objection {
                checker,
                workload,
                seed,
            }) => println!("| {mutant:?} | {checker} | {workload:?} | {seed} |"),
            None => {
                println!("| {mutant:?} | | | |");
                survivors.push(mutant);
            }
        }
    }
    let (all, caught) = (Mutant::ALL.len(), Mutant::ALL.len() - survivors.len());
    println!("{caught} of {all} are caught.");
    assert_eq!(survivors, HARMLESS);
    assert!(caught * 100 >= all * 95, "{caught} of {all}");
}

fn first_objection(mutant: Mutant) -> Option<Objection> {
    let seeds = 0..SCHEDULES;
    let mut runs = seeds.flat_map(|seed| Workload::ALL.map(|workload| (workload, seed)));
    runs.find_map(|(workload, seed)| {
        let failure = run(workload, seed, Some(mutant)).err()?;
        Some(Objection {
            checker: failure.checker,
            workload,
            seed,
        })
    })
}
