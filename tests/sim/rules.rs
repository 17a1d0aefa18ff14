//! The rules by which an agent checks batches: an honest server breaks them only in a race.

use agent_core::refusal::Rule;
use tests::{chaos::Chaos, encounters::Encounters, simulation::Simulation, workloads::Workload};

/// The number of schedules for each workload.
const SCHEDULES: u64 = 10;

/// The workloads in which somebody lowers the desired number, changes or takes over pods, while pods are created or deleted.
const OVERTAKEN: [Workload; 6] = [
    Workload::Down,
    Workload::UpThenDown,
    Workload::Delete,
    Workload::PodReplaced,
    Workload::MinReadySeconds,
    Workload::OverlappingSelectors,
];

/// Returns the rules by which an agent refused operations, over some schedules of a workload in a calm world, with counts.
fn refused(workload: Workload) -> Vec<(Rule, u64)> {
    let mut met = Encounters::default();
    for seed in 0..SCHEDULES {
        let world = Simulation::within(workload, seed, Chaos::calm(), None).run_world();
        met.add(&world.expect("calm worlds come to rest").encounters);
    }
    let counts = Rule::ALL.map(|(rule, name)| (rule, met.count(name)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn calm_worlds_meet_rules_only_where_a_change_overtakes_a_decision() {
    for workload in Workload::ALL {
        let refused = refused(workload);
        let expected: &[Rule] = if workload == Workload::TemplateChange {
            &[Rule::Template]
        } else if OVERTAKEN.contains(&workload) {
            &[Rule::Surplus, Rule::Shortage, Rule::Inactive]
        } else {
            &[]
        };
        let is_expected = |(rule, _): &(Rule, u64)| expected.contains(rule);
        assert!(refused.iter().all(is_expected), "{workload:?}: {refused:?}");
    }
}
