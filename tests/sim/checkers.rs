//! Tests of the checkers: in worlds with a deliberate fault, the right checker must detect the fault.

use tests::{mutants::Mutant, simulation::run_stage};

use crate::seeds::{SCHEDULES, places};

/// Mutants, and the checker that must detect each.
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

#[test]
fn each_checker_sees_its_mutants() {
    for ((mutant, by), first) in SEEN.into_iter().flat_map(|it| places().map(|at| (it, at))) {
        let mut seeds = first..first + SCHEDULES;
        let is_seen = seeds.any(|seed| {
            let failure = run_stage(mutant, seed, true).err();
            failure.is_some_and(|failure| failure.checker == by)
        });
        assert!(is_seen, "{by} does not see {mutant:?} from {first} on");
    }
}
