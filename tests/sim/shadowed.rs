//! A shadow-mode agent beside another controller, in virtual time: correct decisions are no surprise, and each fault is found.

use server_shadow::{Departure, Finding, Subject};
use tests::{
    depth,
    shadowed::{Fault, Outcome, Pace, Stage},
};

/// The number of comparisons of a correct controller without a surprise.
const COMPARISONS: u64 = 5_000;
/// The maximum number of comparisons of its subject until a fault is found, on average over the worlds.
const FOUND_WITHIN: u64 = 100;
/// The number of comparisons of all subjects to search for a fault.
const LOOKED_FOR: u64 = 2_000;
/// The seeds of the worlds for each fault.
const SEEDS: std::ops::Range<u64> = 0..5;

const FAULTS: [Fault; 12] = [
    Fault::ReadinessIgnored,
    Fault::CostReversed,
    Fault::CrowdingReversed,
    Fault::ReadyTimeReversed,
    Fault::AssignmentReversed,
    Fault::MakesOneMore,
    Fault::MakesOneLess,
    Fault::DeletesOneMore,
    Fault::DeletesOneLess,
    Fault::Impatient,
    Fault::AdoptsStrangers,
    Fault::StatusTooGood,
];

fn surprises(outcome: &Outcome) -> Vec<String> {
    let told = outcome.differences.iter().map(|told| &told.finding);
    let surprises = told.filter(|finding| finding.departure.is_none());
    surprises.map(|finding| format!("{finding:#?}")).collect()
}

/// Runs a correct controller, and fails on any unexplained difference.
fn holds_no_surprise(pace: Pace) {
    let seed = depth::number("DECREE_SHADOWED_SEED").unwrap_or(1);
    let outcome = Stage::new(seed, pace, None).run(COMPARISONS);
    let surprises = surprises(&outcome);
    eprintln!(
        "{pace:?}, DECREE_SHADOWED_SEED={seed}: {:?}, {} explained, {} deleted by others",
        outcome.agreements,
        outcome.differences.len(),
        outcome.deleted_by_others,
    );
    for told in &outcome.differences {
        eprintln!("  {:?}", told.finding);
    }
    assert!(
        surprises.is_empty(),
        "{} of {COMPARISONS} are surprises: {}",
        surprises.len(),
        surprises.join("\n")
    );
    for subject in Subject::ALL {
        let compared = outcome.agreements.of(subject).compared;
        assert!(compared > 50, "{subject:?}: {compared} were compared");
    }
}

#[test]
fn right_controller_holds_no_surprise_on_a_quiet_machine() {
    holds_no_surprise(Pace::Quiet);
}

#[test]
fn right_controller_holds_no_surprise_on_a_busy_machine() {
    holds_no_surprise(Pace::Busy);
}

/// Runs a controller with a fault. Returns the first surprise, and the number of comparisons of its subject until then.
fn found(fault: Fault, seed: u64) -> Option<(u64, Finding)> {
    let outcome = Stage::new(seed, Pace::Quiet, Some(fault)).run_to_surprise(LOOKED_FOR);
    let told = outcome.differences.into_iter().map(|told| told.finding);
    let surprise = told
        .into_iter()
        .find(|finding| finding.departure.is_none())?;
    let compared = outcome.agreements.of(surprise.subject).compared;
    Some((compared, surprise))
}

#[test]
fn each_fault_is_found_soon() {
    let mut late = Vec::new();
    for fault in FAULTS {
        let found: Vec<_> = SEEDS.map(|seed| found(fault, seed)).collect();
        let compared = found
            .iter()
            .map(|found| found.as_ref().map(|(compared, _)| *compared));
        let compared: Vec<_> = compared.collect();
        eprintln!("{fault:?}: found within {compared:?} comparisons");
        let all: Option<u64> = compared.iter().copied().sum();
        if all.is_none_or(|all| all > FOUND_WITHIN * compared.len() as u64) {
            late.push((fault, found));
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}

#[test]
fn what_others_delete_is_told_as_that() {
    let outcome = Stage::new(2, Pace::Quiet, None).run(COMPARISONS / 5);
    assert!(outcome.deleted_by_others > 0, "{outcome:?}");
    let told = outcome
        .differences
        .iter()
        .map(|told| told.finding.departure);
    let others = told.filter(|departure| *departure != Some(Departure::DeletedByOthers));
    assert_eq!(others.count(), 0, "{outcome:?}");
}
