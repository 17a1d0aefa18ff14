//! Pods that are asked for their deletion costs, and answer late, twice, wrongly or never, or are gone; and servers that ask for any pod.

use std::{collections::BTreeMap, time::Duration};

use agent_fake::Kind;
use jiff::SignedDuration;
use serde_json::Value;
use tests::{
    actors::malicious::Malice,
    builders::{ReplicaSetBuilder, replica_set},
    chaos::Chaos,
    limits::Limits,
    malicious_server::chaos,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::{AskedPods, World, is_busy},
};

const WORLDS: u64 = 40;
/// A create that takes effect late can exceed the limit of creates, as people scale often.
const EXCUSED: &str = "never_more_than_wanted";
/// The time of people's acts, and the maximum time for the world to come to rest afterwards.
const SPAN: SignedDuration = SignedDuration::from_mins(4);
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(20);
const ANNOTATION: &str = "decree.dev/scale-in-cost";

fn set(name: &str, on_silence: &str) -> ReplicaSetBuilder {
    replica_set(name).annotated(ANNOTATION, &format!("http://:8080/busy{on_silence}"))
}

fn world(seed: u64, rng: Rng, chaos: Chaos, is_troubled: bool) -> World {
    let mut world = World::new(seed, rng, chaos, None);
    world.is_witnessed = true;
    world.asked = Some(AskedPods {
        is_troubled,
        pods: Vec::new(),
    });
    world
}

/// Steps the world until it is as desired.
fn rest(world: &mut World) -> Result<(), String> {
    let until = world.now() + REST_WITHIN;
    while let Err(text) = i8_as_wanted(world) {
        if !world.step(until) {
            return Err(format!("no rest: {text}"));
        }
    }
    Ok(())
}

fn pods(world: &World) -> impl Iterator<Item = &Value> {
    world.cluster.objects(Kind::Pod).map(|pod| &**pod)
}

#[test]
fn busy_pods_stay() {
    for (seed, on_silence) in (0..WORLDS).zip(["", ", wait"].into_iter().cycle()) {
        let mut world = world(seed, Rng::new(seed), Chaos::calm(), false).with_plan(vec![
            Act::begin(set("web", on_silence).replicas(9)),
            (Duration::from_secs(30), Act::scale("web", 3)),
        ]);
        let until = world.now() + SignedDuration::from_secs(29);
        while world.step(until) {}
        let busy = |world: &World| {
            let own =
                pods(world).filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == "web");
            let uids = own.filter_map(|pod| pod["metadata"]["uid"].as_str());
            uids.filter(|uid| is_busy(uid)).count()
        };
        let before = busy(&world);
        let until = world.now() + SignedDuration::from_secs(2);
        while world.step(until) {}
        rest(&mut world).unwrap_or_else(|text| panic!("seed {seed}: {text}"));
        assert_eq!(
            busy(&world),
            before.min(3),
            "seed {seed}: {before} of 9 were busy"
        );
        let asked = world.asked.as_ref().expect("agents ask").pods.len();
        assert_eq!(asked, 9, "seed {seed}: each is asked once");
    }
}

#[test]
fn worlds_with_troubled_pods_come_to_rest() {
    for seed in 0..WORLDS {
        let mut rng = Rng::new(seed);
        let chaos = chaos(&mut rng);
        let on_silence = *rng.pick(&["", ", wait"]);
        let mut plan = vec![Act::begin(set("web", on_silence).replicas(5))];
        let mut at = Duration::from_secs(2);
        while at < Duration::from_secs(220) {
            let act = match rng.between(0, 4) {
                0 => Act::KillPod,
                1 => Act::DeletePod,
                2 => Act::FailPod,
                _ => Act::scale("web", *rng.pick(&[0, 2, 5, 9])),
            };
            plan.push((at, act));
            at += rng.delay(Duration::from_secs(20));
        }
        let mut world = world(seed, rng, chaos, true).with_plan(plan);
        let mut limits = Limits::default();
        let until = world.now() + SPAN;
        while world.step(until) {
            if let Err((limit, text)) = limits.judge(&world) {
                assert_eq!(limit, EXCUSED, "seed {seed}: {text}");
            }
        }
        world.heal();
        // Waits end once pods answer.
        world.asked = world.asked.map(|_| AskedPods::default());
        rest(&mut world).unwrap_or_else(|text| panic!("seed {seed}: {text}"));
    }
}

#[test]
fn malicious_servers_make_agents_ask_no_other_pods() {
    let mut asked = 0;
    for seed in 0..4 {
        let mut rng = Rng::new(seed);
        let chaos = chaos(&mut rng);
        let mut plan = vec![
            Act::begin(set("web", ", wait").replicas(4)),
            Act::begin(replica_set("api").replicas(3)),
        ];
        for second in (5..500).step_by(7) {
            let set = *rng.pick(&["web", "web", "api"]);
            plan.push((
                Duration::from_secs(second),
                Act::scale(set, *rng.pick(&[1, 3, 6])),
            ));
        }
        let mut world = world(seed, rng, chaos, true).with_plan(plan);
        world.corrupt_servers(Some(Malice::default()));
        let until = world.now() + SignedDuration::from_mins(10);
        let (mut limits, mut owners) = (Limits::default(), BTreeMap::new());
        while world.step(until) {
            limits
                .judge(&world)
                .unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"));
            for pod in pods(&world) {
                let [uid, owner] =
                    ["/metadata/uid", "/metadata/ownerReferences/0/name"].map(|path| {
                        pod.pointer(path)
                            .and_then(Value::as_str)
                            .unwrap_or_default()
                    });
                owners.insert(uid.to_owned(), owner.to_owned());
            }
            for pod in world.asked.iter_mut().flat_map(|it| it.pods.drain(..)) {
                asked += 1;
                assert_eq!(
                    owners.get(&pod.uid).map(String::as_str),
                    Some("web"),
                    "seed {seed}: {pod:?}"
                );
            }
        }
    }
    assert!(asked > 100, "{asked} pods were asked");
}
