//! An honest server does not meet the rules of the agent where nothing races: its view is as new as the agent's.

use tests::{
    encounters::{GUARD, OUTCOME},
    simulation::run_apart,
    workloads::Workload,
};

/// How many worlds of each workload are tried.
const SEEDS: u64 = 20;

test_each_workload!(check);

fn check(workload: Workload) {
    // The garbage collector takes pods away while the server decides: that is a race.
    if workload == Workload::Delete {
        return;
    }
    for seed in 0..SEEDS {
        let rested = run_apart(workload, seed).expect("the canonical tests say so");
        let met = rested.encounters;
        assert!(
            met.count(OUTCOME) > 0,
            "{workload:?} {seed}: nothing is done"
        );
        assert_eq!(met.count(GUARD), 0, "{workload:?} {seed}: refusals");
    }
}
