//! Pods that end as soon as they exist, for an hour of virtual time: the server creates few of them, and reports the problem.

use std::{collections::BTreeSet, time::Duration};

use agent_fake::Kind;
use serde_json::json;
use tests::{builders::replica_set, chaos::Chaos, rng::Rng, workloads::Act, world::World};

/// The fate of each new pod.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// A kubelet rejects it.
    Fails,
    /// A webhook has dropped its labels.
    LosesLabels,
    /// Another controller removes it.
    IsRemoved,
}

/// Runs a world until a time, with one fate for all new pods. Returns the number of new pods.
fn new_pods(world: &mut World, met: &mut BTreeSet<String>, until: Duration, fate: Fate) -> usize {
    let end = world.now() + until;
    let before = met.len();
    loop {
        let goes_on = world.step(end);
        for name in names(world) {
            if met.insert(name.clone()) {
                meet(world, &name, fate);
            }
        }
        assert!(met.len() < 1_000, "it runs away: {fate:?}");
        if !goes_on {
            return met.len() - before;
        }
    }
}

fn meet(world: &mut World, name: &str, fate: Fate) {
    let cluster = &mut world.cluster;
    let met = match fate {
        Fate::Fails => cluster.fail_pod("default", name, "Rejected"),
        Fate::LosesLabels => {
            let labels = json!({"metadata": {"labels": null}});
            cluster.patch(Kind::Pod, "default", name, &labels)
        }
        Fate::IsRemoved => cluster.remove_pod_now("default", name),
    };
    met.expect("it is there");
}

#[test]
fn however_pods_end_few_are_made_in_an_hour() {
    for fate in [Fate::Fails, Fate::LosesLabels, Fate::IsRemoved] {
        for desired in [1, 30] {
            let mut world = world(desired, Chaos::calm());
            let desired = usize::try_from(desired).expect("it is small");
            let met = &mut BTreeSet::new();
            let first = new_pods(&mut world, met, Duration::from_secs(60), fate);
            // Grants after 10 and 30 s.
            assert_eq!(first, desired + desired.max(20) + 10, "{fate:?}");
            // Grants after 70, 150 and 310 s, and then every 300 s.
            let hour = new_pods(&mut world, met, Duration::from_secs(3_540), fate);
            assert_eq!(hour, 13 * 5, "{fate:?}");
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
    let end = world.now() + Duration::from_secs(600);
    while world.step(end) {}
    assert_eq!(names(&world).len(), 7);
}

/// The names of the pods of the ReplicaSet.
fn names(world: &World) -> Vec<String> {
    let pods = world.cluster.objects(Kind::Pod);
    let names = pods.filter_map(|pod| pod["metadata"]["name"].as_str());
    let ours = names.filter(|name| name.starts_with("web-"));
    ours.map(ToOwned::to_owned).collect()
}

fn world(desired: i32, chaos: Chaos) -> World {
    let seed = 1;
    let set = replica_set("web").replicas(desired).build();
    let plan = vec![(Duration::ZERO, Act::Create(set))];
    World::new(seed, Rng::new(seed), chaos, None).with_plan(plan)
}
