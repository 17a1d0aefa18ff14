//! Tests of the checkers: in worlds with a deliberate fault, the right checker must detect the fault.

use tests::{mutants::Mutant, simulation::run_stage};

use crate::seeds::{SCHEDULES, places};

#[test]
fn delete_without_its_uid_is_seen() {
    is_seen(Mutant::DropUidPrecondition, "i1_delete_hits_the_chosen_pod");
}

#[test]
fn delete_of_a_bystander_is_seen() {
    is_seen(Mutant::DeleteBystanders, "i1_no_unowned_pod_deleted");
}

#[test]
fn replayed_create_is_seen() {
    is_seen(Mutant::ReplayCreate, "i2_no_duplicate_create");
}

#[test]
fn decision_on_a_partial_view_is_seen() {
    is_seen(Mutant::DecideOnPartialView, "i6_view");
}

#[test]
fn decision_on_a_view_without_own_writes_is_seen() {
    is_seen(Mutant::ForgetOwnWrites, "i6_view");
}

#[test]
fn second_batch_in_flight_is_seen() {
    is_seen(Mutant::SendBatchTwice, "i6_view");
}

#[test]
fn lost_events_are_seen() {
    is_seen(Mutant::LoseEvents, "i8_comes_to_rest");
}

#[test]
fn agent_that_does_not_wait_for_creates_of_another_is_seen() {
    is_seen(Mutant::SkipBarrier, "i4_surplus_bound");
}

#[test]
fn create_that_outlives_its_timeout_is_seen() {
    is_seen(Mutant::IgnoreTimeout, "i4_surplus_bound");
}

#[test]
fn name_that_is_used_again_is_seen() {
    is_seen(Mutant::ReuseNames, "i3_no_name_twice");
}

fn is_seen(mutant: Mutant, by: &str) {
    for first in places() {
        let mut others = Vec::new();
        let mut objections = (first..first + SCHEDULES).filter_map(|seed| {
            let failure = run_stage(mutant, seed, true).err()?;
            Some(failure.checker)
        });
        let found = objections.any(|checker| {
            others.push(checker);
            checker == by
        });
        assert!(
            found,
            "{by} does not see {mutant:?} from {first} on; these saw it: {others:?}"
        );
    }
}
