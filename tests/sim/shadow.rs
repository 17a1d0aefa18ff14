//! A session in shadow mode beside agents that act: it agrees with correct decisions, and differs from faulty ones.

use std::time::Duration;

use decree_api::v1;
use jiff::SignedDuration;
use serde_json::json;
use tests::{
    builders::{pod, replica_set},
    chaos::Chaos,
    depth,
    mutants::Mutant,
    rng::Rng,
    shadow::Shadow,
    workloads::Act,
    world::World,
};

/// The number of comparisons with correct decisions, without a difference that nothing explains.
const COMPARISONS: u64 = 2_500;
/// The number of acts of people in a world, and the number of ReplicaSets without a controller.
const ACTS: usize = 60;
const SETS: [&str; 3] = ["web", "api", "slow"];
/// The ReplicaSets of a Deployment.
const REVISIONS: [&str; 2] = ["shop-1", "shop-2"];
/// The time after the last act until each lasting difference is reported.
const REPORTED: SignedDuration = SignedDuration::from_secs(60);
/// The number of worlds with each fault.
const SEEDS: u64 = 2;

/// The faults of sessions that lead to wrong acts, each with the subject of its difference.
const FAULTS: [(Mutant, v1::Subject); 9] = [
    (Mutant::CountEndedPods, v1::Subject::Count),
    (Mutant::CreateOneMore, v1::Subject::Count),
    (Mutant::DeleteNeighbour, v1::Subject::Victims),
    (Mutant::DropAdoptions, v1::Subject::Adoption),
    (Mutant::DropReleases, v1::Subject::Adoption),
    (Mutant::ForgetObservedGeneration, v1::Subject::Status),
    (Mutant::FreezeReplicas, v1::Subject::Count),
    (Mutant::IgnoreMinReadySeconds, v1::Subject::Status),
    (Mutant::MiscountReplicas, v1::Subject::Status),
];

/// The acts of people: they scale, roll out, delete, evict and relabel pods, and a node is lost.
fn acts(rng: &mut Rng) -> Vec<(Duration, Act)> {
    let mut plan = Vec::new();
    let mut at = Duration::ZERO;
    for name in SETS.into_iter().chain(REVISIONS) {
        let seconds = if name == "slow" { 12 } else { 0 };
        let mut set = replica_set(name)
            .replicas(3)
            .min_ready_seconds(seconds)
            .build();
        if REVISIONS.contains(&name) {
            set["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "shop-uid", "controller": true,
            }]);
        }
        plan.push((at, Act::Create(set)));
    }
    for number in 0..ACTS {
        at += Duration::from_secs(rng.between(1, 25));
        let replicas = i32::try_from(rng.between(0, 8)).unwrap_or(0);
        match rng.between(0, 19) {
            0..=7 => plan.push((at, Act::scale(rng.pick::<&str>(&SETS), replicas))),
            8..=12 => {
                // A roll-out: one ReplicaSet grows while the other shrinks.
                let [new, old] = *rng.pick(&[REVISIONS, [REVISIONS[1], REVISIONS[0]]]);
                for step in 1..=replicas {
                    at += rng.delay(Duration::from_secs(2));
                    plan.push((at, Act::scale(new, step)));
                    plan.push((
                        at + rng.delay(Duration::from_secs(1)),
                        Act::scale(old, replicas - step),
                    ));
                }
            }
            13 => plan.push((at, Act::DeletePod)),
            14 => plan.push((at, Act::KillPod)),
            15 | 16 => plan.push((at, Act::FailPod)),
            17 => plan.push((
                at,
                Act::Relabel {
                    value: "away".to_owned(),
                },
            )),
            18 => {
                let orphan =
                    pod(&format!("orphan-{number}")).labelled("app", rng.pick::<&str>(&SETS));
                plan.push((at, Act::Create(orphan.build())));
            }
            _ if number == ACTS / 2 => plan.push((at, Act::FailNode)),
            _ => {}
        }
    }
    plan
}

/// Runs a world with delays of agents up to this time, and a session in shadow mode whose streams are later, until everything is reported.
fn run(seed: u64, delay: Duration, fault: Option<Mutant>) -> v1::ListDifferencesResponse {
    let mut rng = Rng::new(seed);
    let chaos = Chaos {
        network_max: delay,
        call_max: delay,
        watch_max: delay,
        ..Chaos::calm()
    };
    let plan = acts(&mut rng);
    let mut world = World::new(seed, rng, chaos, fault).with_plan(plan);
    let mut shadow = Shadow::open(&mut world, seed, delay * 5 / 2);
    while world.is_planned() {
        let until = world.now() + SignedDuration::from_secs(10);
        shadow.run(&mut world, until);
    }
    let until = world.now() + REPORTED;
    shadow.run(&mut world, until);
    shadow.found()
}

/// Runs worlds, and fails on a difference that nothing explains.
fn agrees(delay: Duration) {
    let (mut compared, mut skipped, mut others) = (0, 0, 0);
    for seed in depth::number("DECREE_SIM_SEED").unwrap_or(0).. {
        let found = run(seed, delay, None);
        let sum = |of: fn(&v1::Agreement) -> u64| found.agreements.iter().map(of).sum::<u64>();
        let unexplained = sum(|it| it.unexplained);
        assert_eq!(unexplained, 0, "DECREE_SIM_SEED={seed}: {found:#?}");
        compared += found.compared;
        skipped += sum(|it| it.not_compared);
        others += found.deleted_by_others;
        if compared >= COMPARISONS {
            break;
        }
    }
    println!("{delay:?}: {compared} compared, {skipped} not, {others} deleted by others");
}

#[test]
fn correct_decisions_agree_on_an_idle_machine() {
    agrees(Duration::from_millis(15));
}

#[test]
fn correct_decisions_agree_on_a_busy_machine() {
    agrees(Duration::from_millis(600));
}

#[test]
fn faulty_decisions_differ() {
    for (fault, subject) in FAULTS {
        let is_it = |found: &v1::Difference| found.subject() == subject;
        for seed in 0..SEEDS {
            let found = run(seed, Duration::from_millis(15), Some(fault));
            let told = found.differences.iter().filter(|it| is_it(it)).count();
            println!("{fault:?}, seed {seed}: {told} of {}", found.compared);
            assert!(told > 0, "{fault:?}, DECREE_SIM_SEED={seed}: {found:#?}");
        }
    }
}
