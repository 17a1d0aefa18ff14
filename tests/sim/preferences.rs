//! Preferences of a ReplicaSet's owner, with faults of all kinds: no pod is created beside one that ends, and no ended pod goes that is to
//! be kept.

use std::time::Duration;

use agent_fake::Kind;
use jiff::SignedDuration;
use tests::{
    builders::{replica_set, with_preferences},
    chaos::Chaos,
    limits::Limits,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

const WORLDS: u64 = 40;
/// The time of people's acts, and the maximum time for the world to come to rest afterwards.
const SPAN: SignedDuration = SignedDuration::from_mins(5);
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(20);

#[test]
fn worlds_with_preferences_keep_them_and_come_to_rest() {
    for seed in 0..WORLDS {
        if let Err(text) = live(seed) {
            panic!("seed {seed}: {text}");
        }
    }
}

fn live(seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let (chaos, plan) = (Chaos::draw(&mut rng), plan(&mut rng));
    let mut world = World::new(seed, rng, chaos, None).with_plan(plan);
    let mut limits = Limits::default();
    let mut step = |world: &mut World, until| {
        let goes_on = world.step(until);
        match limits.judge(world) {
            // An agent that crashes begins again at once, at most a few times here.
            Err((limit, text)) if !limit.ends_with("_paced") => {
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

fn plan(rng: &mut Rng) -> Vec<(Duration, Act)> {
    let set = with_preferences(replica_set("web").replicas(5)).build();
    let mut plan = vec![(Duration::ZERO, Act::Create(set))];
    let mut at = Duration::from_secs(2);
    while at < Duration::from_secs(240) {
        let act = match rng.between(0, 5) {
            0 => Act::Scale {
                set: "web".to_owned(),
                replicas: *rng.pick(&[0, 2, 5, 9]),
            },
            1 => Act::KillPod,
            2 => Act::DeletePod,
            _ => Act::FailPod,
        };
        plan.push((at, act));
        at += rng.delay(Duration::from_secs(20));
    }
    plan
}
