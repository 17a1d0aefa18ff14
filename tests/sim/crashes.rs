//! A crash at each boundary of an operation, in each canonical workload: every plan converges.

use tests::{
    crashes::{self, Topology, boundaries, check, plans},
    mutants::Mutant,
    workloads::Workload,
    world::{Boundary, Crash, Moment, PlannedCrash},
};

/// The minimum number of plans.
const PLANS_MIN: usize = 50_000;
/// The moments of a frame.
const OF_FRAMES: [Moment; 3] = [Moment::Sent, Moment::Received, Moment::Handled];
/// The moments of a call.
const OF_CALLS: [Moment; 5] = [
    Moment::Checked,
    Moment::Sent,
    Moment::Received,
    Moment::Committed,
    Moment::Handled,
];
/// The moments of requests to the API server, and of their responses.
const OF_REQUESTS: [Moment; 2] = [Moment::Received, Moment::Handled];

test_each_workload!(check);

#[test]
fn plans_are_many_and_every_boundary_is_among_them() {
    let mut count = 0;
    let mut passed = Vec::new();
    for (workload, topology) in all_worlds() {
        let boundaries = boundaries(workload, topology, None).expect("the canonical tests say so");
        count += plans(workload, topology, boundaries.len()).count();
        passed.extend(boundaries);
    }
    assert!(count >= PLANS_MIN, "{count} plans");
    let missing: Vec<_> = expected().filter(|it| !passed.contains(it)).collect();
    assert!(missing.is_empty(), "no plan crashes at {missing:?}");
}

#[test]
fn agent_that_starts_again_from_a_stale_list_is_seen() {
    is_seen(Mutant::ListStaleAfterRestart);
}

#[test]
fn agent_that_does_not_wait_for_creates_of_the_one_before_is_seen() {
    is_seen(Mutant::SkipBarrier);
}

#[test]
fn standby_takes_over_wherever_the_leader_crashes() {
    let (workload, topology) = (Workload::Create, Topology::Redundant);
    let passed = boundaries(workload, topology, None).expect("the canonical tests say so");
    let crashes = plans(workload, topology, passed.len()).filter(|plan| {
        let PlannedCrash {
            boundary, crash, ..
        } = plan.planned;
        passed[boundary].what == "create_pod" && crash == Crash::Agent
    });
    let mut count = 0;
    for plan in crashes {
        let world = crashes::run(plan, None).expect("the canonical tests say so");
        assert_eq!(world.encounters.count("Lease taken"), 2, "{plan}");
        count += 1;
    }
    assert!(count > 0, "pods are created");
}

/// Asserts that some plan detects a world that is only broken after a crash, and that the failure names the plan.
fn is_seen(mutant: Mutant) {
    let (workload, topology) = (Workload::Create, Topology::Single);
    let passed = boundaries(workload, topology, Some(mutant));
    let passed = passed.expect("nothing crashes in a quiet world");
    let mut all = plans(workload, topology, passed.len());
    let seen = all.find_map(|plan| crashes::run(plan, Some(mutant)).err());
    let seen = seen.expect("some plan lets the agent die at the wrong time");
    assert!(seen.to_string().contains("DECREE_CRASH_PLAN=Create:"));
}

fn all_worlds() -> impl Iterator<Item = (Workload, Topology)> {
    let workloads = Workload::ALL.into_iter();
    workloads.flat_map(|workload| Topology::ALL.map(|topology| (workload, topology)))
}

/// Returns the boundaries that the canonical workloads must pass at least.
fn expected() -> impl Iterator<Item = Boundary> {
    let frames = [
        "Hello",
        "Welcome",
        "SnapshotBegin",
        "SnapshotObjects",
        "SnapshotEnd",
        "Events",
        "Batches",
        "Outcomes",
    ];
    let calls = [
        "create_pod",
        "delete_pod",
        "adopt_pod",
        "release_pod",
        "write_status",
    ];
    let requests = [
        "connection",
        "response",
        "list request",
        "list response",
        "watch request",
        "watch event",
        "Lease request",
        "Lease response",
    ];
    let frames = frames.into_iter().flat_map(|what| at(what, &OF_FRAMES));
    let calls = calls.into_iter().flat_map(|what| at(what, &OF_CALLS));
    let requests = requests.into_iter().flat_map(|what| at(what, &OF_REQUESTS));
    frames.chain(calls).chain(requests)
}

fn at(what: &'static str, moments: &'static [Moment]) -> impl Iterator<Item = Boundary> {
    moments.iter().map(move |moment| Boundary {
        what,
        moment: *moment,
    })
}
