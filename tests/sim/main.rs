//! Simulation: the real state machines of server and agent and a model of the cluster, in virtual time, under random schedules.

#![expect(
    clippy::print_stdout,
    reason = "the figures are for the people who run the tests, and for docs/internals/evidence.md"
)]

/// Makes a test of each workload, with the same name, which passes the workload to `$check`.
macro_rules! test_each_workload {
    ($check:path) => {
        test_each_workload! { $check:
            create Create
            up Up
            down Down
            up_then_down UpThenDown
            delete Delete
            pod_killed PodKilled
            pod_failed PodFailed
            node_lost NodeLost
            relabel_out RelabelOut
            adopt_orphan AdoptOrphan
            template_change TemplateChange
            overlapping_selectors OverlappingSelectors
            pod_replaced PodReplaced
            min_ready_seconds MinReadySeconds
        }
    };
    ($check:path: $($name:ident $workload:ident)*) => {
        $(
            #[test]
            fn $name() {
                $check(tests::workloads::Workload::$workload);
            }
        )*

        #[test]
        fn every_workload_is_tested() {
            let tested = [$(tests::workloads::Workload::$workload),*];
            assert_eq!(tested, tests::workloads::Workload::ALL);
        }
    };
}

mod advice;
mod backoff;
mod budget;
mod canonical;
mod costs;
mod crashes;
mod malicious;
mod mutants;
mod outages;
mod preferences;
mod repeat;
mod rules;
mod seeds;
mod shadow;
mod shards;
mod surge;
mod troubled;
