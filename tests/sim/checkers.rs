//! Tests of the checkers: in worlds with a deliberate fault, the right checker must detect the fault.

use tests::{mutants::Mutant, simulation::run_stage};

use crate::seeds::{SCHEDULES, places};

/// Makes a test of each mutant and the checker that must detect it.
macro_rules! seen {
    ($(fn $test:ident() of $mutant:ident by $checker:literal;)*) => {
        $(
            #[test]
            fn $test() {
                is_seen(Mutant::$mutant, $checker);
            }
        )*
    };
}

seen! {
    fn delete_without_its_uid_is_seen() of DropUidPrecondition by "i1_delete_hits_the_chosen_pod";
    fn delete_of_a_bystander_is_seen() of DeleteBystanders by "i1_no_unowned_pod_deleted";
    fn replayed_create_is_seen() of ReplayCreate by "i2_no_duplicate_create";
    fn decision_on_a_partial_view_is_seen() of DecideOnPartialView by "i6_view";
    fn decision_on_a_view_without_own_writes_is_seen() of ForgetOwnWrites by "i6_view";
    fn second_batch_in_flight_is_seen() of SendBatchTwice by "i6_view";
    fn lost_events_are_seen() of LoseEvents by "i8_comes_to_rest";
    fn agent_that_does_not_wait_for_creates_of_another_is_seen() of SkipBarrier by "i4_surplus_bound";
    fn create_that_outlives_its_timeout_is_seen() of IgnoreTimeout by "i4_surplus_bound";
    fn name_that_is_used_again_is_seen() of ReuseNames by "i3_no_name_twice";
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
