//! A server that is down for ten minutes, clocks that jump by an hour, and watch caches that lag by half a minute, in virtual time: the actions
//! meanwhile, and the time to converge. docs/reliability.md has the figures.

use std::time::Duration;

use agent_fake::Kind;
use jiff::{SignedDuration, Timestamp};
use tests::{
    builders::replica_set,
    chaos::{Chaos, Fault},
    facts::Fact,
    invariants::replicas,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

const SEEDS: u64 = 10;
const SET: &str = "web";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// The maximum time for an unhindered world to converge.
const SOON: Duration = Duration::from_secs(30);

/// The actions of an agent, and the maximum number of pods.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) creates: usize,
    pub(crate) deletes: usize,
    pub(crate) most: usize,
}

impl Done {
    pub(crate) fn note_facts(&mut self, world: &World) {
        for fact in &world.facts {
            self.creates += usize::from(matches!(fact, Fact::PodCreated { .. }));
            self.deletes += usize::from(matches!(fact, Fact::PodDeleted { .. }));
        }
    }

    pub(crate) fn note_pods(&mut self, world: &World) {
        let mut sets = world.cluster.objects(Kind::ReplicaSet);
        let uid = sets.find_map(|set| set["metadata"]["uid"].as_str());
        let count = uid.map_or(0, |uid| replicas(world, uid).count());
        self.most = self.most.max(count);
    }

    /// The creates, the deletes, and the maximum number of pods.
    fn counts(&self) -> (usize, usize, usize) {
        (self.creates, self.deletes, self.most)
    }

    fn run(&mut self, world: &mut World, until: Timestamp) {
        while world.step(until) {
            self.note_facts(world);
            self.note_pods(world);
        }
    }

    /// Runs a world until all planned acts have happened and it has converged, and returns the duration.
    fn settle(&mut self, world: &mut World, within: Duration) -> Duration {
        let begin = world.now();
        loop {
            let rest = i8_as_wanted(world);
            if rest.is_ok() && !world.is_planned() {
                break;
            }
            let goes_on = world.step(begin + within);
            self.note_facts(world);
            self.note_pods(world);
            assert!(goes_on, "after {within:?}: {rest:?}; {self:?}");
        }
        world.now().duration_since(begin).unsigned_abs()
    }
}

/// A world with one ReplicaSet of `replicas` desired pods.
fn begin(seed: u64, chaos: Chaos, replicas: i32) -> World {
    let plan = vec![Act::begin(replica_set(SET).replicas(replicas))];
    World::new(seed, Rng::new(seed), chaos, None).with_plan(plan)
}

fn say(longest: Duration) {
    println!("as wanted after {longest:?} at most");
}

/// Removes `count` pods as a user.
fn remove_pods(world: &mut World, count: usize) {
    let pods = world.cluster.objects(Kind::Pod);
    let its = pods.filter(|pod| pod["metadata"]["labels"]["app"] == SET);
    let names = its.filter_map(|pod| pod["metadata"]["name"].as_str());
    let names: Vec<_> = names.take(count).map(str::to_owned).collect();
    assert_eq!(names.len(), count);
    for name in names {
        let removed = world.cluster.remove_pod_now("default", &name);
        removed.expect("it is there");
    }
}

#[test]
fn server_that_was_away_for_ten_minutes_is_caught_up_with_soon() {
    const AWAY: Duration = Duration::from_secs(600);
    let mut longest = Duration::ZERO;
    for seed in 0..SEEDS {
        let mut world = begin(seed, Chaos::calm(), 20);
        Done::default().settle(&mut world, MINUTE);
        let gone = world.now();
        world.plan_fault(Duration::ZERO, Fault::StopServers(AWAY));
        world.plan(2 * MINUTE, Act::scale(SET, 40));
        let mut away = Done::default();
        away.run(&mut world, gone + 5 * MINUTE);
        remove_pods(&mut world, 5);
        away.run(&mut world, gone + AWAY - Duration::from_millis(1));
        assert_eq!(away.counts(), (0, 0, 20), "seed {seed}");

        let mut back = Done::default();
        longest = longest.max(back.settle(&mut world, SOON));
        let until = world.now() + 5 * MINUTE;
        back.run(&mut world, until);
        assert_eq!(back.counts(), (25, 0, 40), "seed {seed}");
    }
    say(longest);
}

#[test]
fn clocks_that_jump_by_an_hour_either_way_make_and_take_no_pod() {
    let mut longest = Duration::ZERO;
    for (seed, jump) in (0..SEEDS).flat_map(|seed| [(seed, HOUR), (seed, -HOUR)]) {
        let chaos = Chaos::calm_but(|it| it.standbys = 1);
        let mut world = begin(seed, chaos, 20);
        let mut done = Done::default();
        done.settle(&mut world, MINUTE);
        let leaders: Vec<_> = world.agents.keys().copied().collect();
        world.plan_fault(Duration::ZERO, Fault::SetClocks(jump));
        let until = world.now() + MINUTE;
        done.run(&mut world, until);
        assert_eq!(done.counts(), (20, 0, 20), "seed {seed}, {jump:#}");

        // During a change, and back.
        world.plan(Duration::ZERO, Act::scale(SET, 40));
        world.plan_fault(Duration::from_millis(2), Fault::SetClocks(-jump));
        world.plan_fault(
            Duration::from_millis(4),
            Fault::SetClocks(SignedDuration::ZERO),
        );
        longest = longest.max(done.settle(&mut world, SOON));
        world.plan(Duration::ZERO, Act::scale(SET, 10));
        world.plan_fault(Duration::from_millis(2), Fault::SetClocks(jump));
        longest = longest.max(done.settle(&mut world, SOON));
        assert_eq!(done.counts(), (40, 30, 40), "seed {seed}, {jump:#}");
        let lead: Vec<_> = world.agents.keys().copied().collect();
        assert_eq!(lead, leaders, "seed {seed}, {jump:#}: the Lease is kept");
    }
    say(longest);
}

#[test]
fn caches_that_are_half_a_minute_behind_make_no_pod_too_many() {
    const BEHIND: Duration = Duration::from_secs(30);
    let mut longest = Duration::ZERO;
    let lags = [
        (BEHIND, Duration::ZERO),
        (Duration::ZERO, BEHIND),
        (BEHIND, BEHIND),
    ];
    for (seed, (pods, sets)) in (0..SEEDS).flat_map(|seed| lags.map(|lag| (seed, lag))) {
        let mut world = begin(seed, Chaos::calm(), 10).with_caches_behind(pods, sets);
        let mut done = Done::default();
        longest = longest.max(done.settle(&mut world, 4 * MINUTE));
        for replicas in [40, 10, 25] {
            world.plan(Duration::ZERO, Act::scale(SET, replicas));
            longest = longest.max(done.settle(&mut world, 4 * MINUTE));
        }
        remove_pods(&mut world, 5);
        longest = longest.max(done.settle(&mut world, 4 * MINUTE));
        let exact = (10 + 30 + 15 + 5, 30, 40);
        let case = format!("seed {seed}, behind by {pods:?} and {sets:?}");
        assert_eq!(done.counts(), exact, "{case}");
    }
    say(longest);
}
