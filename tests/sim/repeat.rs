//! A seed determines a whole world: the same seed repeats the same world, step by step.

use tests::{
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
        let bare = run(workload, 3, None).expect("the canonical tests say so");
        let unrecorded = (bare.steps, bare.churn);
        assert_eq!(unrecorded, (first.steps, first.churn), "{workload:?}");
    }
}

#[test]
fn failure_names_the_test_that_repeats_it() {
    assert_eq!(test_name(Workload::UpThenDown), "up_then_down");
    assert_eq!(test_name(Workload::Create), "create");
}
