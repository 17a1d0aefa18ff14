//! The checkers are checked: worlds that are broken on purpose must be seen to be broken, and by the right checker.

use tests::{mutants::Mutant, simulation::run, workloads::Workload};

/// How many schedules a broken world may take to be found out.
const SCHEDULES: u64 = 60;
/// Workloads in which there are too few pods for a while.
const LACKING: [Workload; 3] = [Workload::Create, Workload::Up, Workload::PodKilled];

#[test]
fn delete_without_its_uid_is_seen() {
    is_seen(
        Mutant::DropUidPrecondition,
        &[Workload::PodReplaced],
        "i1_delete_hits_the_chosen_pod",
    );
}

#[test]
fn delete_of_a_bystander_is_seen() {
    is_seen(
        Mutant::DeleteBystanders,
        &[Workload::Down],
        "i1_no_unowned_pod_deleted",
    );
}

#[test]
fn replayed_create_is_seen() {
    is_seen(
        Mutant::ReplayCreate,
        &[Workload::Create],
        "i2_no_duplicate_create",
    );
}

#[test]
fn decision_on_a_partial_view_is_seen() {
    is_seen(
        Mutant::DecideOnPartialView,
        &[Workload::Create, Workload::Up],
        "i6_view",
    );
}

#[test]
fn decision_on_a_view_without_own_writes_is_seen() {
    is_seen(
        Mutant::ForgetOwnWrites,
        &[Workload::Create, Workload::Up],
        "i6_view",
    );
}

#[test]
fn second_batch_in_flight_is_seen() {
    is_seen(Mutant::SendBatchTwice, &[Workload::Create], "i6_view");
}

#[test]
fn lost_events_are_seen() {
    is_seen(
        Mutant::LoseEvents,
        &[Workload::PodKilled, Workload::Create],
        "i8_comes_to_rest",
    );
}

#[test]
fn agent_that_does_not_wait_for_creates_of_another_is_seen() {
    is_seen(Mutant::SkipBarrier, &LACKING, "i4_surplus_bound");
}

#[test]
fn create_that_outlives_its_timeout_is_seen() {
    is_seen(Mutant::IgnoreTimeout, &LACKING, "i4_surplus_bound");
}

#[test]
fn name_that_is_used_again_is_seen() {
    is_seen(
        Mutant::ReuseNames,
        &[Workload::PodKilled],
        "i3_no_name_twice",
    );
}

fn is_seen(mutant: Mutant, workloads: &[Workload], by: &str) {
    let mut others = Vec::new();
    for seed in 0..SCHEDULES {
        for workload in workloads {
            match run(*workload, seed, Some(mutant)) {
                Err(failure) if failure.checker == by => return,
                Err(failure) => others.push(failure.checker),
                Ok(_) => {}
            }
        }
    }
    panic!("{by} does not see {mutant:?}; others that saw it: {others:?}");
}
