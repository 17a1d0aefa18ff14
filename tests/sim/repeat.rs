//! A seed determines a whole world: the same seed repeats the same world, step by step.

use tests::{
    rng::Rng,
    simulation::{record, run, test_name},
    workloads::Workload,
};

#[test]
fn same_seed_gives_the_same_trace() {
    for workload in Workload::ALL {
        let recorded = |seed| record(workload, seed, None).expect("the canonical tests say so");
        let (first, second) = (recorded(3), recorded(3));
        assert_eq!(first.trace.lines(), second.trace.lines(), "{workload:?}");
        assert_eq!(first, second, "{workload:?}");
        assert!(first.trace.lines().len() > 10, "{workload:?} is a story");
        assert_ne!(first.trace, recorded(4).trace, "{workload:?}");
    }
}

#[test]
fn recording_changes_nothing() {
    for workload in Workload::ALL {
        let bare = run(workload, 5, None).expect("the canonical tests say so");
        let recorded = record(workload, 5, None).expect("the canonical tests say so");
        assert_eq!(
            (bare.steps, bare.churn),
            (recorded.steps, recorded.churn),
            "{workload:?}"
        );
    }
}

#[test]
fn failure_names_the_test_that_repeats_it() {
    assert_eq!(test_name(Workload::UpThenDown), "up_then_down");
    assert_eq!(test_name(Workload::Create), "create");
}

#[test]
fn plans_differ_from_seed_to_seed() {
    let plan = |seed| Workload::PodKilled.plan(&mut Rng::new(seed));
    assert_eq!(plan(1), plan(1));
    assert_ne!(plan(1), plan(2));
}
