//! The rules by which an agent holds batches: an honest server meets them where something races, and nowhere else.

use agent_core::rules::Rule;
use tests::{chaos::Chaos, encounters::Encounters, simulation::Simulation, workloads::Workload};

/// How many schedules of each workload are run.
const SCHEDULES: u64 = 10;

/// The workloads in which somebody wants fewer pods, or others, or takes them over, while pods are made or go.
const OVERTAKEN: [Workload; 6] = [
    Workload::Down,
    Workload::UpThenDown,
    Workload::Delete,
    Workload::PodReplaced,
    Workload::MinReadySeconds,
    Workload::OverlappingSelectors,
];

/// Returns what an agent refused over some schedules of a workload in a calm world.
fn refused(workload: Workload) -> Vec<(Rule, u64)> {
    let mut met = Encounters::default();
    for seed in 0..SCHEDULES {
        let world = Simulation::within(workload, seed, Chaos::calm(), None).run_world();
        met.add(&world.expect("calm worlds come to rest").encounters);
    }
    let counts = Rule::ALL.map(|rule| (rule, met.count(rule.as_str())));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn calm_worlds_meet_rules_only_where_a_change_overtakes_a_decision() {
    for workload in Workload::ALL {
        let refused = refused(workload);
        let expected: &[Rule] = if workload == Workload::TemplateChange {
            &[Rule::Template]
        } else if OVERTAKEN.contains(&workload) {
            &[Rule::Surplus, Rule::Shortage, Rule::Reference]
        } else {
            &[]
        };
        let is_expected = |(rule, _): &(Rule, u64)| expected.contains(rule);
        assert!(refused.iter().all(is_expected), "{workload:?}: {refused:?}");
    }
}
