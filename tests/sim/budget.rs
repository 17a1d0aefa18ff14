//! The budget in virtual time: a bad server cannot exceed it, and an honest server continues after a person resumes.

use std::{collections::VecDeque, time::Duration};

use agent_core::{
    api::Request,
    budget::{Action, BudgetConfig},
};
use agent_fake::Kind;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tests::{
    actors::malicious::Malice,
    builders::replica_set,
    chaos::Chaos,
    encounters::{BUDGET_EXCEEDED, BUDGET_RESUMED},
    facts::Fact,
    rest::i8_as_wanted,
    rng::Rng,
    workloads::Act,
    world::World,
};

/// The number of worlds with a bad server, and their duration.
const SEEDS: u64 = 2;
const SPAN: SignedDuration = SignedDuration::from_mins(15);
/// The maximum number of deletes per minute there.
const DELETES_MAX: u32 = 6;
/// The maximum time for everything to continue after a resume: a list, some calls and the delays of a calm world.
const SOON: Duration = Duration::from_secs(2);

/// A budget that holds deletes above limits such as `replicaset=3`.
fn holding(deletes: &str) -> BudgetConfig {
    BudgetConfig {
        action: Action::Hold,
        deletes: deletes.parse().expect("they are limits"),
        ..BudgetConfig::default()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn annotate(set: &str, value: &str) -> Act {
    let patch = json!({"metadata": {"annotations": {"decree.dev/resume": value}}});
    Act::Patch {
        set: set.to_owned(),
        patch,
    }
}

/// A calm world with acts of people at these times.
fn world(seed: u64, budget: BudgetConfig, plan: Vec<(Duration, Act)>) -> World {
    let world = World::new(seed, Rng::new(seed), Chaos::calm(), None);
    world.with_budget(budget).with_plan(plan)
}

/// Runs a world until a time after its beginning.
fn run_until(world: &mut World, begin: Timestamp, after: Duration) {
    while world.step(begin + after) {}
}

/// Returns the number of pods of a ReplicaSet that are not terminating.
fn pods(world: &World, set: &str) -> usize {
    let is_of = |pod: &&agent_fake::Object| {
        pod["metadata"]["labels"]["app"] == set && pod["metadata"]["deletionTimestamp"].is_null()
    };
    world.cluster.objects(Kind::Pod).filter(is_of).count()
}

/// Two ReplicaSets of eight pods that are scaled to 0 and back for a quarter of an hour.
fn up_and_down() -> Vec<(Duration, Act)> {
    let create = |name| Act::begin(replica_set(name).replicas(8));
    let mut plan = vec![create("web"), create("api")];
    for round in 0..15 {
        let replicas = if round % 2 == 0 { 0 } else { 8 };
        let at = seconds(30 + 59 * round);
        plan.extend(["web", "api"].map(|set| (at, Act::scale(set, replicas))));
    }
    plan
}

/// Runs a world with a bad server. Returns the number of deletes that took effect, and the number of times the budget was exceeded.
fn bad_while(seed: u64, budget: BudgetConfig) -> (usize, u64) {
    let mut world = world(seed, budget, up_and_down());
    world.corrupt_servers(Some(Malice::default()));
    let until = world.now() + SPAN;
    let (mut recent, mut count) = (VecDeque::new(), 0);
    loop {
        let goes_on = world.step(until);
        let now = world.now();
        for fact in &world.facts {
            if let Fact::Called {
                request,
                took_effect: true,
                ..
            } = fact
                && matches!(&**request, Request::DeletePod { .. })
            {
                recent.push_back(now);
                count += 1;
            }
        }
        // A call may take effect shortly after it was counted.
        let since = now - SignedDuration::from_secs(59);
        while recent.front().is_some_and(|at| *at < since) {
            recent.pop_front();
        }
        let is_held = budget.action == Action::Warn || recent.len() <= DELETES_MAX as usize;
        assert!(is_held, "seed {seed}: {} deletes in a minute", recent.len());
        if !goes_on {
            return (count, world.encounters.count(BUDGET_EXCEEDED));
        }
    }
}

#[test]
fn bad_server_deletes_no_more_in_a_minute_than_the_budget_allows() {
    let held = holding(&format!("cluster={DELETES_MAX}"));
    let warned = BudgetConfig {
        action: Action::Warn,
        ..held
    };
    let sum = |budget| {
        let runs = (0..SEEDS).map(|seed| bad_while(seed, budget));
        runs.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    };
    let (deletes, exceeded) = sum(held);
    assert!(exceeded > 0 && deletes > 0, "{deletes} deletes, {exceeded}");
    let (unheld, _) = sum(warned);
    assert!(
        unheld > 2 * deletes,
        "{unheld} without a hold, {deletes} with"
    );
}

#[test]
fn annotation_that_changes_resumes_and_one_that_is_there_does_not() {
    let mut set = replica_set("web").replicas(8).build();
    set["metadata"]["annotations"] = json!({"decree.dev/resume": "before"});
    let plan = vec![
        (Duration::ZERO, Act::Create(set)),
        (seconds(10), annotate("web", "while nothing is held")),
        (seconds(20), Act::scale("web", 0)),
        (seconds(600), annotate("web", "1")),
        (seconds(700), annotate("web", "2")),
    ];
    let mut world = world(1, holding("replicaset=3"), plan);
    let begin = world.now();
    for (at, left) in [
        (seconds(19), 8),
        (seconds(25), 5),
        (seconds(599), 5),
        (seconds(600) + SOON, 2),
        (seconds(699), 2),
        (seconds(700) + SOON, 0),
    ] {
        run_until(&mut world, begin, at);
        assert_eq!(pods(&world, "web"), left, "after {at:?}");
    }
    run_until(&mut world, begin, seconds(705));
    assert_eq!(i8_as_wanted(&world), Ok(()));
    let met = &world.encounters;
    assert_eq!(
        (met.count(BUDGET_EXCEEDED), met.count(BUDGET_RESUMED)),
        (2, 2)
    );
}

#[test]
fn cluster_that_is_resumed_waits_for_no_backoff() {
    let create = |name| Act::begin(replica_set(name).replicas(4));
    let mut plan = Vec::from(["web", "api"].map(create));
    plan.extend(["web", "api"].map(|set| (seconds(20), Act::scale(set, 0))));
    // At that time the next attempt is up to half a minute away.
    plan.push((seconds(600), annotate("web", "all 1")));
    let mut world = world(1, holding("cluster=4"), plan);
    let begin = world.now();
    for (at, left) in [(seconds(599), 4), (seconds(600) + SOON, 0)] {
        run_until(&mut world, begin, at);
        assert_eq!(pods(&world, "web") + pods(&world, "api"), left);
    }
}

#[test]
fn server_that_meets_a_hold_asks_twice_a_minute_in_the_end() {
    let plan = vec![
        Act::begin(replica_set("web").replicas(3)),
        (seconds(20), Act::scale("web", 0)),
    ];
    let mut world = world(1, holding("replicaset=1"), plan);
    let begin = world.now();
    let hour = seconds(3_600);
    run_until(&mut world, begin, hour);
    let refused = world.encounters.count("budget");
    // The delays double from 5 ms to 30 s. Each attempt has one or two operations.
    assert!(
        (100..300).contains(&refused),
        "{refused} refusals in {hour:?}"
    );
    assert_eq!(pods(&world, "web"), 2);
}
