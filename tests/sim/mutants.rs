//! The scoreboard: worlds with one deliberate fault each, and the checker that detects it.
//!
//! Each mutant has a world in which most schedules show its fault ([`Mutant::stage`]). So detection does not depend on luck: the search finds the mutant
//! from two places in the endless sequence of seeds, and a changed random draw makes no difference.

use std::fmt;

use tests::{
    depth,
    failure::Failure,
    mutants::Mutant,
    simulation::{run, run_stage},
    workloads::Workload,
};

use super::seeds::{SCHEDULES, places};

/// The number of schedules per place that measure how many of them show a mutant, in a full run.
const MEASURED: u64 = 30;
/// The minimum percentage of these schedules that shows a mutant: far below the usual share, and far above a lucky one.
const SEEN_MIN: usize = 25;
/// The number of schedules of each workload that a harmless mutant must pass: in the gate, and in a full run.
const HARMLESS_FOR: u64 = 20;
const HARMLESS_FOR_IN_FULL: u64 = 60;
/// The mutants that no checker can detect; docs/internals/evidence.md explains each.
const HARMLESS: [Mutant; 3] = [
    Mutant::TakeTimeoutForRefusal,
    Mutant::AnswerTwice,
    Mutant::ApplyTwice,
];

/// The mutants that this checker must detect; any may detect the others.
const SEEN: [(Mutant, &str); 10] = [
    (Mutant::DropUidPrecondition, "i1_delete_hits_the_chosen_pod"),
    (Mutant::DeleteBystanders, "i1_no_unowned_pod_deleted"),
    (Mutant::ReplayCreate, "i2_no_duplicate_create"),
    (Mutant::DecideOnPartialView, "i6_view"),
    (Mutant::ForgetOwnWrites, "i6_view"),
    (Mutant::SendBatchTwice, "i6_view"),
    (Mutant::LoseEvents, "i8_comes_to_rest"),
    (Mutant::SkipBarrier, "i4_surplus_bound"),
    (Mutant::IgnoreTimeout, "i4_surplus_bound"),
    (Mutant::ReuseNames, "i3_no_name_twice"),
];

fn harmful() -> impl Iterator<Item = Mutant> {
    let all = Mutant::ALL.into_iter();
    all.filter(|mutant| !HARMLESS.contains(mutant))
}

/// `cargo test -p tests --test sim mutants::scoreboard -- --nocapture` prints the scoreboard. Only a full run measures the share of
/// schedules that show each mutant: if few showed it, a changed draw could hide it.
#[test]
fn scoreboard_of_mutants() {
    println!("| mutant | caught by | workload | schedules, % |\n| --- | --- | --- | ---: |");
    for mutant in harmful() {
        let checkers = places().map(|first| first_objection(mutant, first).checker);
        let share = depth::is_full_for_worlds().then(|| share_that_shows(mutant));
        let shown = share.map_or_else(String::new, |it| it.to_string());
        let (checker, workload) = (checkers[0], mutant.workload());
        println!("| {mutant:?} | {checker} | {workload:?} | {shown} |");
        assert!(
            share.is_none_or(|it| it >= SEEN_MIN),
            "{mutant:?}: {share:?} %"
        );
    }
    println!("{} of {} are caught.", harmful().count(), Mutant::ALL.len());
}

/// Returns the percentage of schedules that show a mutant.
fn share_that_shows(mutant: Mutant) -> usize {
    let seeds = places().map(|first| first..first + MEASURED);
    let shown: Vec<_> = seeds
        .into_iter()
        .flatten()
        .map(|seed| run_stage(mutant, seed, true).is_err())
        .collect();
    shown.iter().filter(|it| **it).count() * 100 / shown.len()
}

/// Returns the first failure from a place on, by the checker that must detect the mutant.
fn first_objection(mutant: Mutant, first: u64) -> Failure {
    let by = SEEN.iter().find(|(it, _)| *it == mutant);
    let by = by.map(|(_, checker)| *checker);
    let mut seeds = first..first + SCHEDULES;
    let found = seeds.find_map(|seed| {
        let failure = run_stage(mutant, seed, true).err()?;
        by.is_none_or(|it| failure.checker == it).then_some(failure)
    });
    found.unwrap_or_else(|| {
        panic!("{by:?} does not see {mutant:?} in {SCHEDULES} schedules from {first} on")
    })
}

/// The findings in these worlds come from the mutant alone.
#[test]
fn worlds_that_are_made_for_mutants_are_sound() {
    are_sound(harmful(), |mutant, seed| run_stage(mutant, seed, false));
}

/// Proves that the worlds of mutants have no failures without the fault.
pub(crate) fn are_sound<T, E: fmt::Display>(
    mutants: impl IntoIterator<Item = Mutant>,
    run: impl Fn(Mutant, u64) -> Result<T, E>,
) {
    for mutant in mutants {
        for seed in places() {
            if let Err(failure) = run(mutant, seed) {
                panic!("the world that is made for {mutant:?}: {failure}");
            }
        }
    }
}

#[test]
fn mutants_that_no_checker_can_detect_do_no_harm() {
    let schedules = if depth::is_full_for_worlds() {
        HARMLESS_FOR_IN_FULL
    } else {
        HARMLESS_FOR
    };
    for (mutant, workload) in HARMLESS
        .into_iter()
        .flat_map(|mutant| Workload::ALL.map(|workload| (mutant, workload)))
    {
        for seed in 0..schedules {
            if let Err(failure) = run(workload, seed, Some(mutant)) {
                panic!("{mutant:?}: {failure}");
            }
        }
    }
}
