//! Processes that share a cluster: in every failure, no two serve the same namespace, and no pod is created twice.

use tests::{
    depth::number,
    encounters::{Encounters, HELD_BACK, LATE},
    sharded::{Mutant, Shared, growth, haste, loss, unrest},
};

use crate::seeds::{SCHEDULES, places};

/// The number of schedules of all workloads that cost as much as one of these, because each of these is much longer.
const SHARE: u64 = 400;
/// The same number for hasty schedules, which create far more.
const SHARE_IN_HASTE: u64 = 1_000;
/// The default number of schedules; `DECREE_SIM_RUNS` overrides it.
const RUNS: u64 = 6_000;
/// The number of schedules of all workloads with whose share every random event must have happened here.
const RUNS_THAT_MEET_ALL: u64 = 40_000;

type Story = fn(u64, Option<Mutant>) -> Result<Shared, String>;

/// Each mutant, with its story.
const MUTANTS: [(Mutant, Story); 7] = [
    (Mutant::IgnoreLayout, growth),
    (Mutant::IgnoreFence, haste),
    (Mutant::GiveBackEarly, haste),
    (Mutant::HashOtherwise, unrest),
    (Mutant::IgnoreTimeout, haste),
    (Mutant::TakeHeldLease, growth),
    (Mutant::IgnoreMargin, haste),
];

/// Runs a story with its share of `DECREE_SIM_RUNS` schedules, from `DECREE_SIM_SEED` on. After enough runs, each of these events must have
/// happened.
fn check(name: &str, share: u64, story: Story, expected: &[&str]) {
    let first = number("DECREE_SIM_SEED").unwrap_or(0);
    let all = number("DECREE_SIM_RUNS").unwrap_or(RUNS);
    let runs = all.div_ceil(share);
    let mut met = Encounters::default();
    for seed in first..first + runs {
        let shared = story(seed, None).unwrap_or_else(|why| {
            panic!(
                "{why}\nagain: DECREE_SIM_SEED={seed} DECREE_SIM_RUNS=1 cargo test -p tests --test sim shards::{name}"
            )
        });
        met.add(shared.encounters());
    }
    println!("{name}: {runs} runs, {met:?}");
    let missing = expected.iter().filter(|what| met.count(what) == 0);
    let missing: Vec<_> = missing.collect();
    assert!(
        all < RUNS_THAT_MEET_ALL || missing.is_empty(),
        "{missing:?} never happened: {met:?}"
    );
}

#[test]
fn processes_that_come_and_go_serve_each_namespace_once() {
    let expected = [
        "Lease given back",
        LATE,
        HELD_BACK,
        "process ended in order",
        "process lost its number of shards",
        "process paused",
        "server drained",
        "server killed",
        "shard lost",
        "shard taken",
    ];
    let name = "processes_that_come_and_go_serve_each_namespace_once";
    check(name, SHARE, unrest, &expected);
}

#[test]
fn another_number_of_shards_begins_when_the_one_before_has_ended() {
    let expected = ["number of shards changed", "process paused", "shard taken"];
    let name = "another_number_of_shards_begins_when_the_one_before_has_ended";
    check(name, SHARE, growth, &expected);
}

#[test]
fn processes_that_are_lost_and_stopped_amid_creates_leave_none_behind() {
    let name = "processes_that_are_lost_and_stopped_amid_creates_leave_none_behind";
    check(
        name,
        SHARE_IN_HASTE,
        haste,
        &[LATE, HELD_BACK, "process paused"],
    );
}

#[test]
fn shards_of_a_process_that_is_lost_are_served_within_lease_and_two_seconds() {
    let name = "shards_of_a_process_that_is_lost_are_served_within_lease_and_two_seconds";
    check(name, SHARE, loss, &[]);
}

/// The story of a mutant shows the mutant, from two places on.
#[test]
fn each_mutant_is_seen() {
    for (mutant, story) in MUTANTS {
        for first in places() {
            let mut seeds = first..first + SCHEDULES;
            let found = seeds.find_map(|seed| Some((seed, story(seed, Some(mutant)).err()?)));
            let (seed, why) = found.unwrap_or_else(|| {
                panic!("the story that is made for {mutant:?} does not show it in {SCHEDULES} schedules from {first} on")
            });
            println!("{mutant:?}: seed {seed}: {why}");
        }
    }
}
