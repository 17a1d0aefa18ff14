//! Agents with and without shards: whatever happens to them, no two may write in a namespace.

use tests::{
    depth::number,
    layouts::{Mutant, run},
};

use super::seeds::{SCHEDULES, places};

/// The number of schedules of all workloads that cost as much as one of these.
const SHARE: u64 = 60;
/// The default number of schedules; `DECREE_SIM_RUNS` overrides it.
const RUNS: u64 = 6_000;

#[test]
fn no_two_processes_may_write_in_a_namespace_whatever_their_numbers_of_shards() {
    let first = number("DECREE_SIM_SEED").unwrap_or(0);
    let runs = number("DECREE_SIM_RUNS").unwrap_or(RUNS).div_ceil(SHARE);
    for seed in first..first + runs {
        let begun = run(seed, None);
        let begun = begun.unwrap_or_else(|why| panic!("DECREE_SIM_SEED={seed}: {why}"));
        assert!(begun >= 7, "DECREE_SIM_SEED={seed}: {begun} began to write");
    }
}

#[test]
fn each_mutant_is_seen() {
    for mutant in Mutant::ALL {
        for first in places() {
            let mut seeds = first..first + SCHEDULES;
            let found = seeds.find_map(|seed| Some((seed, run(seed, Some(mutant)).err()?)));
            let (seed, why) = found.unwrap_or_else(|| {
                panic!("no one of {SCHEDULES} schedules from {first} on shows {mutant:?}")
            });
            println!("{mutant:?}: seed {seed}: {why}");
        }
    }
}
