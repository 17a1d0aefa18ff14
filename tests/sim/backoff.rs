//! Writes that are refused for a long time, in virtual time: the retries are frequent enough to recover soon, and no more frequent.

use std::time::Duration;

use agent_fake::Kind;
use jiff::Timestamp;
use serde_json::json;
use tests::{
    builders::replica_set, chaos::Chaos, facts::Fact, rng::Rng, workloads::Act, world::World,
};

/// The default maximum. A list, some calls and the delays of a calm world are added to it.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(2);

/// Runs a world until a time after its beginning, and returns the number of started writes.
fn writes_until(world: &mut World, begin: Timestamp, after: Duration) -> usize {
    let mut writes = 0;
    loop {
        let goes_on = world.step(begin + after);
        let began = world.facts.iter();
        let began = began.filter(|fact| matches!(fact, Fact::WriteBegan { .. }));
        writes += began.count();
        if !goes_on {
            return writes;
        }
    }
}

fn pods(world: &World) -> usize {
    world.cluster.objects(Kind::Pod).count()
}

/// A ReplicaSet of three pods with a quota that admits one.
fn refused(seed: u64) -> World {
    let mut world = World::new(seed, Rng::new(seed), Chaos::calm(), None)
        .with_plan(vec![Act::begin(replica_set("web").replicas(3))]);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {"pods": "1"}},
    });
    world.cluster.create(quota).expect("it is valid");
    world
}

#[test]
fn pods_come_within_the_backoff_once_a_quota_is_raised_after_an_hour() {
    for seed in 0..8 {
        let mut world = refused(seed);
        let begin = world.now();
        let raised = Duration::from_secs(3_600 + 7 * seed);
        writes_until(&mut world, begin, raised);
        assert_eq!(pods(&world), 1);
        let enough = json!({"spec": {"hard": {"pods": "3"}}});
        let patched = world
            .cluster
            .patch(Kind::ResourceQuota, "default", "few", &enough);
        patched.expect("it is there");
        writes_until(&mut world, begin, raised + BACKOFF_MAX + SOON);
        assert_eq!(pods(&world), 3, "seed {seed}");
    }
}

#[test]
fn quota_that_refuses_is_asked_no_more_than_upstream_would_at_first_and_twice_a_minute_then() {
    let mut world = refused(1);
    let begin = world.now();
    // The delays double from 5 ms: upstream's fourteenth attempt is 82 s after the first. The condition for the refusal is one more event.
    let first = writes_until(&mut world, begin, Duration::from_secs(60));
    assert!(
        (8..=16).contains(&first),
        "{first} writes in the first minute"
    );
    writes_until(&mut world, begin, Duration::from_secs(600));
    let later = writes_until(&mut world, begin, Duration::from_secs(1_200));
    assert!((18..=21).contains(&later), "{later} writes in ten minutes");
}
