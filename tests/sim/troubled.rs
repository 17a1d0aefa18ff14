//! Worlds with a temporary problem: nothing escalates, people are informed, and the world recovers. Also the mutants of this protection.

use tests::{
    depth,
    mutants::Mutant,
    troubled::{self, run_stage},
};

use super::{
    mutants::are_sound,
    seeds::{SCHEDULES, places},
};

/// The minimum percentage of its worlds that must show a mutant.
const SEEN_MIN: u64 = 25;

#[test]
fn worlds_with_troubles_heal_and_nothing_runs_away() {
    println!("{:?}", troubled::check());
}

/// `cargo test -p tests --test sim troubled::scoreboard -- --nocapture` prints the scoreboard. Only a full run measures the share of worlds that
/// show each mutant.
#[test]
fn scoreboard_of_mutants() {
    println!("| mutant | caught by | worlds, % |\n| --- | --- | ---: |");
    for mutant in Mutant::TROUBLED {
        let (mut all, mut seen, mut by) = (0, 0, "");
        for first in places() {
            let mut is_seen = false;
            for seed in first..first + SCHEDULES {
                all += 1;
                if let Err(failure) = run_stage(mutant, seed, true) {
                    (is_seen, by, seen) = (true, failure.checker, seen + 1);
                    if !depth::is_full_for_worlds() {
                        break;
                    }
                }
            }
            assert!(is_seen, "{mutant:?} is not seen from {first} on");
        }
        println!("| {mutant:?} | {by} | {} |", seen * 100 / all);
        assert!(seen * 100 >= all * SEEN_MIN, "{mutant:?}: {seen} of {all}");
    }
}

/// The findings in these worlds come from the mutant alone.
#[test]
fn worlds_that_are_made_for_mutants_are_sound() {
    are_sound(Mutant::TROUBLED, |mutant, seed| {
        run_stage(mutant, seed, false)
    });
}
