//! Replacements before evictions, with lost and late calls, while people cordon, uncordon and taint nodes at any time: never more pods
//! than desired and in advance, never fewer than desired, and no ready pod goes before its replacement is ready.

use std::time::Duration;

use agent_fake::Kind;
use jiff::SignedDuration;
use tests::{
    builders::{replica_set, with_surge},
    invariants::has_status_beyond_desired,
    limits::Limits,
    malicious_server::chaos,
    mutants::Mutant,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

const WORLDS: u64 = 40;
/// A create that takes effect late can exceed the limit of creates, as people scale often.
const EXCUSED: &str = "never_more_than_wanted";
/// The time of people's acts, and the maximum time for the world to come to rest afterwards.
const SPAN: SignedDuration = SignedDuration::from_mins(5);
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(20);

#[test]
fn worlds_with_cordons_keep_their_pods_and_come_to_rest() {
    let mut replaced = 0;
    for seed in 0..WORLDS {
        match live(seed, None) {
            Ok(count) => replaced += count,
            Err(text) => panic!("seed {seed}: {text}"),
        }
    }
    assert!(replaced > WORLDS, "{replaced} pods are replaced");
}

#[test]
fn server_that_ignores_uncordons_keeps_pods_in_advance() {
    let failures = (0..WORLDS).filter_map(|seed| live(seed, Some(Mutant::IgnoreUncordons)).err());
    let mut found = failures.filter(|text| text.starts_with("no rest"));
    assert!(found.next().is_some());
}

/// Returns the number of pods that were deleted from leaving nodes.
fn live(seed: u64, mutant: Option<Mutant>) -> Result<u64, String> {
    let mut rng = Rng::new(seed);
    let (chaos, plan) = (chaos(&mut rng), plan(&mut rng));
    let mut world = World::new(seed, rng, chaos, mutant).with_plan(plan);
    (world.is_witnessed, world.reads_nodes) = (true, true);
    let mut limits = Limits::default();
    let mut step = |world: &mut World, until| {
        let goes_on = world.step(until);
        let verdict = limits.judge(world).and_then(|()| limits.judge_ready(world));
        match verdict {
            Err((limit, text)) if limit != EXCUSED => Err(format!("{limit}: {text}")),
            Ok(()) | Err(_) => judge_status(world).map(|()| goes_on),
        }
    };
    let until = world.now() + SPAN;
    while step(&mut world, until)? {}
    world.heal();
    let until = world.now() + REST_WITHIN;
    while let Err(text) = i8_as_wanted(&world) {
        if !step(&mut world, until)? {
            return Err(format!("no rest: {text}"));
        }
    }
    Ok(limits.replaced)
}

fn judge_status(world: &World) -> Result<(), String> {
    let mut sets = world.cluster.objects(Kind::ReplicaSet);
    let beyond = sets.find(|set| has_status_beyond_desired(set));
    beyond.map_or(Ok(()), |set| Err(format!("status beyond desired: {set:?}")))
}

fn plan(rng: &mut Rng) -> Vec<(Duration, Act)> {
    let set = with_surge(replica_set("web")).replicas(5);
    let mut plan = vec![Act::begin(set)];
    let mut at = Duration::from_secs(2);
    while at < Duration::from_secs(240) {
        let kind = rng.between(0, 6);
        let act = match kind {
            0 => scale(rng),
            1 => Act::KillPod,
            2 => Act::DeletePod,
            _ => Act::ChangeNode {
                cordoned: rng.chance(500),
                leaving: rng.chance(400),
            },
        };
        plan.push((at, act));
        if kind > 2 && rng.chance(300) {
            // Amid the replacements that the change began.
            at += rng.delay(Duration::from_millis(200));
            plan.push((at, scale(rng)));
        }
        at += rng.delay(Duration::from_secs(20));
    }
    plan.push((Duration::from_secs(250), Act::FreeNodes));
    plan
}

fn scale(rng: &mut Rng) -> Act {
    Act::scale("web", *rng.pick(&[0, 1, 2, 5, 9]))
}
