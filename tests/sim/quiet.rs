//! Without races, an honest server never breaks a rule of the agent: its view is as new as the agent's.

use tests::{
    encounters::{GUARD, OUTCOME},
    simulation::run_apart,
    workloads::Workload,
};

/// The number of worlds for each workload.
const SEEDS: u64 = 20;

test_each_workload!(check);

fn check(workload: Workload) {
    // The garbage collector removes pods while the server decides, which is a race.
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
