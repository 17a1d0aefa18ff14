//! Another controller at work beside the agent, in virtual time: how many pods the two make together, and that somebody is told.

use std::time::Duration;

use agent_core::budget::Action;
use agent_fake::{DeleteOptions, Kind};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tests::{
    builders::replica_set,
    chaos::Chaos,
    encounters::{BUDGET_EXCEEDED, BUDGET_RESUMED},
    facts::Fact,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

const SEEDS: u64 = 5;
/// How long each number of pods is wanted, in seconds.
const ROUND: i64 = 3;
const SET: &str = "web";
const FEW: i32 = 5;
const MANY: i32 = 40;
/// How often the other controller looks.
const PERIOD: SignedDuration = SignedDuration::from_millis(2);
/// A controller that knows nothing of the agent: it makes what is missing, a few at first and then ever more, and deletes what is too many.
#[derive(Default)]
struct Other {
    made: usize,
    round: u32,
}

// === impl Other ===

impl Other {
    fn look(&mut self, world: &mut World) {
        let count = active(world).count();
        let Some(set) = world
            .cluster
            .peek(Kind::ReplicaSet, "default", SET)
            .cloned()
        else {
            return;
        };
        let wanted = set["spec"]["replicas"].as_u64().unwrap_or_default();
        let wanted = usize::try_from(wanted).expect("it is small");
        let missing = wanted.saturating_sub(count);
        self.round = if missing == 0 { 0 } else { self.round + 1 };
        for _ in 0..missing.min(1 << self.round.min(10) >> 1) {
            self.made += 1;
            let name = format!("{SET}-other{}", self.made);
            let pod = pod(&set, &name);
            world.cluster.create(pod).expect("it is valid");
        }
        let name = |pod: &Value| pod["metadata"]["name"].as_str().map(str::to_owned);
        let surplus: Vec<_> = active(world).skip(wanted).filter_map(name).collect();
        for name in &surplus {
            // The agent may have deleted it meanwhile.
            drop(
                world
                    .cluster
                    .delete(Kind::Pod, "default", name, &DeleteOptions::default()),
            );
        }
    }
}

fn pod(set: &Value, name: &str) -> Value {
    let mut pod = set["spec"]["template"].clone();
    pod["kind"] = "Pod".into();
    pod["apiVersion"] = "v1".into();
    pod["metadata"]["name"] = name.into();
    pod["metadata"]["namespace"] = "default".into();
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": SET, "uid": set["metadata"]["uid"], "controller": true,
    }]);
    pod["metadata"]["managedFields"] =
        json!([{"manager": "kube-controller-manager", "operation": "Update"}]);
    pod
}

/// Returns the pods that are not on their way out.
fn active(world: &World) -> impl Iterator<Item = &Value> {
    let pods = world.cluster.objects(Kind::Pod).map(|pod| &**pod);
    pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
}

fn scale(replicas: i32) -> Act {
    Act::Scale {
        set: SET.to_owned(),
        replicas,
    }
}

/// What happened in a while.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    /// The most pods that there were.
    most: usize,
    /// The creates and deletes of the agent that took effect.
    creates: usize,
    deletes: usize,
}

// === impl Done ===

impl Done {
    fn note(&mut self, world: &World) {
        self.most = self.most.max(active(world).count());
    }

    fn note_facts(&mut self, world: &World) {
        for fact in &world.facts {
            self.creates += usize::from(matches!(fact, Fact::PodCreated { .. }));
            self.deletes += usize::from(matches!(fact, Fact::PodDeleted { .. }));
        }
    }
}

/// Lets a world go on beside the other controller.
fn run(world: &mut World, other: &mut Other, until: Timestamp) -> Done {
    let mut done = Done::default();
    while world.now() < until {
        let next = (world.now() + PERIOD).min(until);
        loop {
            let goes_on = world.step(next);
            done.note_facts(world);
            done.note(world);
            if !goes_on {
                break;
            }
        }
        other.look(world);
        done.note(world);
    }
    done
}

#[test]
fn agent_leaves_a_replica_set_to_the_other_controller_and_says_so() {
    for seed in 0..SEEDS {
        let plan = vec![(
            Duration::ZERO,
            Act::Create(replica_set(SET).replicas(FEW).build()),
        )];
        let mut world = World::new(seed, Rng::new(seed), Chaos::calm(), None).with_plan(plan);
        let begin = world.now();
        let at = |seconds: i64| begin + SignedDuration::from_secs(seconds);
        let mut other = Other::default();
        run(&mut world, &mut other, at(ROUND));
        world.plan(Duration::ZERO, scale(MANY));
        let first = run(&mut world, &mut other, at(2 * ROUND));
        // Whichever of the two is first, the agent makes no more than was missing, and deletes nothing that the other has made.
        assert!(
            first.creates <= (MANY - FEW) as usize,
            "seed {seed}: {first:?}"
        );
        assert_eq!(first.deletes, 0, "seed {seed}: {first:?}");
        assert!(
            world.encounters.count(BUDGET_EXCEEDED) > 0,
            "seed {seed}: nobody is told"
        );
        for round in 2..6 {
            world.plan(
                Duration::ZERO,
                scale(if round % 2 == 0 { FEW } else { MANY }),
            );
            let held = run(&mut world, &mut other, at(ROUND * (round + 1)));
            let expected = Done {
                most: MANY as usize,
                ..Done::default()
            };
            assert_eq!(held, expected, "seed {seed}: it is held");
        }
        // The other controller is turned off, and a person lets the agent go on.
        world.plan(Duration::ZERO, scale(MANY + 2));
        let patch = json!({"metadata": {"annotations": {"decree.dev/resume": "1"}}});
        world.plan(
            Duration::from_secs(1),
            Act::Patch {
                set: SET.to_owned(),
                patch,
            },
        );
        while world.step(at(300)) {}
        assert_eq!(i8_as_wanted(&world), Ok(()), "seed {seed}");
        assert!(world.encounters.count(BUDGET_RESUMED) > 0);
    }
}

#[test]
fn without_a_hold_the_two_undo_what_the_other_does() {
    let plan = vec![(
        Duration::ZERO,
        Act::Create(replica_set(SET).replicas(FEW).build()),
    )];
    let budget = agent_core::budget::Config {
        other_controller: Action::Warn,
        ..agent_core::budget::Config::default()
    };
    let world = World::new(1, Rng::new(1), Chaos::calm(), None).with_budget(budget);
    let mut world = world.with_plan(plan);
    let mut other = Other::default();
    let begin = world.now();
    let mut deletes = 0;
    for round in 1..6 {
        world.plan(
            Duration::ZERO,
            scale(if round % 2 == 0 { FEW } else { MANY }),
        );
        let until = begin + SignedDuration::from_secs(ROUND * round);
        deletes += run(&mut world, &mut other, until).deletes;
    }
    assert!(deletes > 0, "the two never meet");
    assert!(
        world.encounters.count(BUDGET_EXCEEDED) > 0,
        "nobody is told"
    );
}
