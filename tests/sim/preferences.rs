//! Preferences of a ReplicaSet's owner, with lost and late calls: no pod is created beside one that ends, and no ended pod goes that is to
//! be kept.

use std::time::Duration;

use agent_fake::Kind;
use jiff::SignedDuration;
use tests::{
    builders::{ReplicaSetBuilder, replica_set, with_preferences},
    limits::Limits,
    malicious_server::chaos,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

const WORLDS: u64 = 40;
/// The limits of preferences. A create that takes effect late can exceed the others here, as people scale often.
const LIMITS: [&str; 2] = ["creates_after_termination", "ended_pods_are_kept"];
/// The time of people's acts, and the maximum time for the world to come to rest afterwards.
const SPAN: SignedDuration = SignedDuration::from_mins(5);
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(20);

#[test]
fn worlds_with_preferences_keep_them_and_come_to_rest() {
    for seed in 0..WORLDS {
        if let Err(text) = live(seed, with_preferences(replica_set("web"))) {
            panic!("seed {seed}: {text}");
        }
    }
}

/// The limit reads only the name of the annotation, and nobody follows this value.
#[test]
fn pods_are_created_beside_one_that_ends_where_nobody_follows_the_annotation() {
    let misspelt = || replica_set("web").annotated("decree.dev/create", "misspelt");
    let failures = (0..WORLDS).filter_map(|seed| live(seed, misspelt()).err());
    let mut exceeded = failures.filter(|text| text.starts_with("creates_after_termination"));
    assert!(exceeded.next().is_some());
}

fn live(seed: u64, set: ReplicaSetBuilder) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let (chaos, plan) = (chaos(&mut rng), plan(&mut rng, set));
    let mut world = World::new(seed, rng, chaos, None).with_plan(plan);
    world.is_witnessed = true;
    let mut limits = Limits::default();
    let mut step = |world: &mut World, until| {
        let goes_on = world.step(until);
        match limits.judge(world) {
            Err((limit, text)) if LIMITS.contains(&limit) => {
                return Err(format!("{limit}: {text}"));
            }
            Ok(()) | Err(_) => {}
        }
        Ok::<_, String>(goes_on)
    };
    let until = world.now() + SPAN;
    while step(&mut world, until)? {}
    world.heal();
    let until = world.now() + REST_WITHIN;
    while let Err(text) = i8_as_wanted(&world).and_then(|()| one_ended(&world)) {
        if !step(&mut world, until)? {
            return Err(format!("no rest: {text}"));
        }
    }
    Ok(())
}

fn one_ended(world: &World) -> Result<(), String> {
    let pods = world.cluster.objects(Kind::Pod);
    let ended = pods
        .filter(|pod| pod["status"]["phase"] == "Failed")
        .count();
    if ended <= 1 {
        Ok(())
    } else {
        Err(format!("{ended} ended pods are kept"))
    }
}

fn plan(rng: &mut Rng, set: ReplicaSetBuilder) -> Vec<(Duration, Act)> {
    let mut plan = vec![Act::begin(set.replicas(5))];
    let mut at = Duration::from_secs(2);
    while at < Duration::from_secs(240) {
        let act = match rng.between(0, 5) {
            0 => Act::scale("web", *rng.pick(&[0, 2, 5, 9])),
            1 => Act::KillPod,
            2 => Act::DeletePod,
            _ => Act::FailPod,
        };
        plan.push((at, act));
        at += rng.delay(Duration::from_secs(20));
    }
    plan
}
