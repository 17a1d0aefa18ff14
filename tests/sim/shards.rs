//! Processes that share a cluster out: no namespace is served twice, and no pod is created twice, whatever becomes of them.

use std::collections::BTreeMap;

use tests::{
    depth::number,
    sharded::{Mutant, Shared, growth, haste, loss, unrest},
};

use crate::seeds::{SCHEDULES, places};

/// How many of the schedules of all workloads one of these stands for: each is as long as many of them.
const SHARE: u64 = 400;
/// The same of those in haste, in which far more is created.
const SHARE_IN_HASTE: u64 = 1_000;
/// How many schedules there are, unless `DECREE_SIM_RUNS` says otherwise.
const RUNS: u64 = 6_000;
/// With how many of the schedules of all workloads everything that is drawn must have happened here.
const RUNS_THAT_MEET_ALL: u64 = 40_000;

type Story = fn(u64, Option<Mutant>) -> Result<Shared, String>;

/// Runs a story under its share of `DECREE_SIM_RUNS`, from `DECREE_SIM_SEED` on. Returns how often things happened.
#[expect(
    clippy::print_stdout,
    reason = "the counts are for whoever runs the schedules"
)]
fn check(
    name: &str,
    share: u64,
    story: impl Fn(u64) -> Result<BTreeMap<&'static str, usize>, String>,
) -> BTreeMap<&'static str, usize> {
    let first = number("DECREE_SIM_SEED").unwrap_or(0);
    let runs = number("DECREE_SIM_RUNS").unwrap_or(RUNS).div_ceil(share);
    let mut counts = BTreeMap::new();
    for seed in first..first + runs {
        let met = story(seed).unwrap_or_else(|why| {
            panic!(
                "{why}\nagain: DECREE_SIM_SEED={seed} DECREE_SIM_RUNS=1 cargo test -p tests --test sim shards::{name}"
            )
        });
        for (what, count) in met {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{name}: {runs} runs, {counts:?}");
    counts
}

/// Asserts that each of these things has happened, where there were runs enough.
fn assert_met(counts: &BTreeMap<&'static str, usize>, wanted: &[&str]) {
    if number("DECREE_SIM_RUNS").unwrap_or(RUNS) < RUNS_THAT_MEET_ALL {
        return;
    }
    for what in wanted {
        assert!(
            counts.contains_key(what),
            "{what:?} never happened: {counts:?}"
        );
    }
}

#[test]
fn processes_that_come_and_go_serve_each_namespace_once() {
    let counts = check(
        "processes_that_come_and_go_serve_each_namespace_once",
        SHARE,
        |seed| unrest(seed, None).map(|shared| shared.counts()),
    );
    let wanted = [
        "Lease given back",
        "create as late as it may be",
        "create held back",
        "process ended in order",
        "process lost its number of shards",
        "process paused",
        "server drained",
        "server killed",
        "shard lost",
        "shard taken",
    ];
    assert_met(&counts, &wanted);
}

#[test]
fn another_number_of_shards_begins_when_the_one_before_has_ended() {
    let counts = check(
        "another_number_of_shards_begins_when_the_one_before_has_ended",
        SHARE,
        |seed| growth(seed, None).map(|shared| shared.counts()),
    );
    assert_met(
        &counts,
        &["number of shards changed", "process paused", "shard taken"],
    );
}

#[test]
fn processes_that_are_lost_and_stopped_amid_creates_leave_none_behind() {
    let counts = check(
        "processes_that_are_lost_and_stopped_amid_creates_leave_none_behind",
        SHARE_IN_HASTE,
        |seed| haste(seed, None).map(|shared| shared.counts()),
    );
    let wanted = [
        "create as late as it may be",
        "create held back",
        "process paused",
    ];
    assert_met(&counts, &wanted);
}

#[test]
fn shards_of_a_process_that_is_lost_are_served_within_lease_and_two_seconds() {
    check(
        "shards_of_a_process_that_is_lost_are_served_within_lease_and_two_seconds",
        SHARE,
        |seed| loss(seed).map(|()| BTreeMap::new()),
    );
}

/// Asserts that the story that is made for a mutant shows it, from two places on, and says what showed it.
#[expect(
    clippy::print_stdout,
    reason = "what found it is for whoever changes the world"
)]
fn is_seen(mutant: Mutant, story: Story) {
    for first in places() {
        let mut seeds = first..first + SCHEDULES;
        let found = seeds.find_map(|seed| Some((seed, story(seed, Some(mutant)).err()?)));
        let (seed, why) = found.unwrap_or_else(|| {
            panic!("the story that is made for {mutant:?} does not show it in {SCHEDULES} schedules from {first} on")
        });
        println!("{mutant:?}: seed {seed}: {why}");
    }
}

#[test]
fn agents_that_ignore_the_number_of_shards_are_seen() {
    is_seen(Mutant::IgnoreLayout, growth);
}

#[test]
fn calls_that_leave_after_the_lease_are_seen() {
    is_seen(Mutant::IgnoreFence, haste);
}

#[test]
fn lease_that_is_given_back_too_early_is_seen() {
    is_seen(Mutant::GiveBackEarly, haste);
}

#[test]
fn agents_that_hash_otherwise_are_seen() {
    is_seen(Mutant::HashOtherwise, unrest);
}

#[test]
fn creates_that_outlast_their_timeout_are_seen() {
    is_seen(Mutant::IgnoreTimeout, haste);
}

#[test]
fn lease_that_is_taken_from_its_holder_is_seen() {
    is_seen(Mutant::TakeHeldLease, growth);
}

#[test]
fn margin_of_creates_that_is_not_kept_is_seen() {
    is_seen(Mutant::IgnoreMargin, haste);
}
