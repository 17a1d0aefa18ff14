//! Pods that end as soon as they exist, for an hour of virtual time: the server creates few of them, and reports the problem.

use std::time::Duration;

use tests::{builders::replica_set, chaos::Chaos, rng::Rng, workloads::Act, world::World};

/// Runs a world for a time. Returns the number of new pods.
fn new_pods(world: &mut World, span: Duration) -> usize {
    let end = world.now() + span;
    let before = world.ledger.ours.len();
    while world.step(end) {
        assert!(world.ledger.ours.len() < 1_000, "it runs away");
    }
    world.ledger.ours.len() - before
}

#[test]
fn however_pods_end_few_are_made_in_an_hour() {
    let [mut rejected, mut relabelled, mut removed] = [(); 3].map(|()| Chaos::calm());
    (rejected.reject, relabelled.relabel, removed.remove) = (1_000, 1_000, 1_000);
    for chaos in [rejected, relabelled, removed] {
        for desired in [1, 30] {
            let mut world = world(desired, chaos.clone());
            let desired = usize::try_from(desired).expect("it is small");
            let first = new_pods(&mut world, Duration::from_secs(60));
            // Grants after 10 and 30 s.
            assert_eq!(first, desired + desired.max(20) + 10, "{chaos:?}");
            // Grants after 70, 150 and 310 s, and then every 300 s.
            let hour = new_pods(&mut world, Duration::from_secs(3_540));
            assert_eq!(hour, 13 * 5, "{chaos:?}");
        }
    }
}

#[test]
fn pods_whose_owner_a_webhook_removes_at_each_write_are_created_once() {
    let chaos = Chaos {
        orphan: 1_000,
        ..Chaos::calm()
    };
    let mut world = world(7, chaos);
    assert_eq!(new_pods(&mut world, Duration::from_secs(600)), 7);
}

fn world(desired: i32, chaos: Chaos) -> World {
    let seed = 1;
    let set = replica_set("web").replicas(desired).build();
    let plan = vec![(Duration::ZERO, Act::Create(set))];
    World::new(seed, Rng::new(seed), chaos, None).with_plan(plan)
}
