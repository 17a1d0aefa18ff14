//! Another controller beside the agent, in virtual time: the number of pods that both create together, and the report to people.

use std::time::Duration;

use agent_core::budget::BudgetConfig;
use jiff::{SignedDuration, Timestamp};
use tests::{
    builders::replica_set,
    encounters::{BUDGET_EXCEEDED, BUDGET_RESUMED},
    other_controller::OtherController,
    rest::i8_as_wanted,
    workloads::Act,
    world::World,
};

use crate::{
    budget::{annotate, scale, world},
    outages::Done,
};

const SEEDS: u64 = 5;
/// The duration of each desired number, in seconds.
const ROUND: i64 = 3;
const SET: &str = "web";
const FEW: i32 = 5;
const MANY: i32 = 40;
/// The interval of the other controller's syncs.
const PERIOD: SignedDuration = SignedDuration::from_millis(2);

/// A calm world with a ReplicaSet of a few pods.
fn begin(seed: u64, budget: BudgetConfig) -> World {
    let set = replica_set(SET).replicas(FEW).build();
    world(seed, budget, vec![(Duration::ZERO, Act::Create(set))])
}

/// Scales the ReplicaSet down and up in turn.
fn scale_in_turns(world: &mut World, round: i64) {
    let replicas = if round % 2 == 0 { FEW } else { MANY };
    world.plan(Duration::ZERO, scale(SET, replicas));
}

/// Runs a world beside the other controller.
fn run(world: &mut World, other: &mut OtherController, until: Timestamp) -> Done {
    let mut done = Done::default();
    while world.now() < until {
        let next = (world.now() + PERIOD).min(until);
        loop {
            let goes_on = world.step(next);
            done.note_facts(world);
            done.note_pods(world);
            if !goes_on {
                break;
            }
        }
        other.look(world);
        done.note_pods(world);
    }
    done
}

#[test]
fn agent_leaves_a_replica_set_to_the_other_controller_and_says_so() {
    for seed in 0..SEEDS {
        let mut world = begin(seed, BudgetConfig::default());
        let start = world.now();
        let at = |seconds: i64| start + SignedDuration::from_secs(seconds);
        let mut other = OtherController::new(SET);
        run(&mut world, &mut other, at(ROUND));
        scale_in_turns(&mut world, 1);
        let first = run(&mut world, &mut other, at(2 * ROUND));
        // Whichever of the two is first, the agent creates no more than the missing pods, and deletes no pod of the other controller.
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
            scale_in_turns(&mut world, round);
            let held = run(&mut world, &mut other, at(ROUND * (round + 1)));
            let expected = Done {
                most: MANY as usize,
                ..Done::default()
            };
            assert_eq!(held, expected, "seed {seed}: it is held");
        }
        // The other controller stops, and a person resumes the agent.
        world.plan(Duration::ZERO, scale(SET, MANY + 2));
        world.plan(Duration::from_secs(1), annotate(SET, "1"));
        while world.step(at(300)) {}
        assert_eq!(i8_as_wanted(&world), Ok(()), "seed {seed}");
        assert!(world.encounters.count(BUDGET_RESUMED) > 0);
    }
}
