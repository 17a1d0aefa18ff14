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
        let pods: Vec<_> = world.cluster.objects(Kind::Pod).cloned().collect();
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().expect("it has one");
            if met.insert(name.to_owned()) {
                meet(world, name, fate);
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
        for wanted in [1, 30] {
            let seed = 1;
            let set = replica_set("web").replicas(wanted).build();
            let mut world = World::new(seed, Rng::new(seed), Chaos::calm(), None)
                .with_plan(vec![(Duration::ZERO, Act::Create(set))]);
            let wanted = usize::try_from(wanted).expect("it is small");
            let met = &mut BTreeSet::new();
            let first = new_pods(&mut world, met, Duration::from_secs(60), fate);
            assert!(first <= wanted + 20, "{fate:?}: {first} in a minute");
            // Attempts at 70, 150 and 310 s, and then every 300 s.
            let hour = new_pods(&mut world, met, Duration::from_secs(3_540), fate);
            assert_eq!(hour, 13 * wanted.min(5), "{fate:?}");
        }
    }
}
