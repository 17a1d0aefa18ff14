//! Agents that advise beside another controller, which knows no preferences: it spares the busy pods, agents write nothing but costs, and all
//! costs go with the preference. A malicious server has no other pod advised.

use std::time::Duration;

use agent_fake::Kind;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tests::{
    actors::malicious::{Attack, Malice},
    builders::replica_set,
    chaos::Chaos,
    limits::{Limits, Verdict},
    malicious_server::chaos,
    other_controller::{ADVISED_COST, OtherController},
    rng::Rng,
    workloads::{Act, NAMESPACE},
    world::{AskedPods, World, is_busy},
};

const WORLDS: u64 = 20;
/// The maximum number of worlds until an agent without rules advises a wrong pod.
const OBEYED: u64 = 10;
/// The preferences, one in each world: busy pods say so by a label, or if they are asked.
const PREFERENCES: [(&str, &str); 2] = [
    ("decree.dev/scale-in", "first=state=idle"),
    ("decree.dev/scale-in-cost", "http://:8080/busy"),
];
/// The seconds at which the ReplicaSet is scaled down, and at which it loses its preference, and the end: each pod may be written once a
/// minute, and an answer may be lost.
const SCALED: i64 = 150;
const WITHDRAWN: i64 = 180;
const END: i64 = 400;

/// A world with a controller of two ReplicaSets, of which the first prefers that idle pods go first.
struct Beside {
    world: World,
    asks: bool,
    others: [OtherController; 2],
    limits: Limits,
}

impl Beside {
    fn new(seed: u64, is_calm: bool, malice: Option<Malice>) -> Self {
        let mut rng = Rng::new(seed);
        let chaos = if is_calm {
            Chaos::calm()
        } else {
            chaos(&mut rng)
        };
        let asks = seed / 2 % 2 == 1;
        let (annotation, value) = PREFERENCES[usize::from(asks)];
        let web = replica_set("web").annotated(annotation, value);
        let sets = [web, replica_set("api")];
        let plan = sets.map(|set| (Duration::ZERO, Act::Create(set.replicas(8).build())));
        let mut world = World::new(seed, rng, chaos, None).with_plan(plan.to_vec());
        (world.is_witnessed, world.advises) = (true, true);
        world.asked = asks.then(AskedPods::default);
        world.corrupt_servers(malice);
        Self {
            world,
            asks,
            others: ["web", "api"].map(OtherController::new),
            limits: Limits::default(),
        }
    }

    /// Lets the world go on for some seconds, and the other controller look each second.
    fn run(&mut self, seconds: i64) -> Verdict {
        for _ in 0..seconds {
            let until = self.world.now() + SignedDuration::from_secs(1);
            while self.world.step(until) {
                self.limits.judge(&self.world)?;
            }
            for other in &mut self.others {
                other.look(&mut self.world);
            }
        }
        Ok(())
    }

    fn patch(&mut self, patch: &Value) {
        let patched = self
            .world
            .cluster
            .patch(Kind::ReplicaSet, NAMESPACE, "web", patch);
        patched.expect("the ReplicaSet is there");
    }

    /// The busy pods of the first ReplicaSet.
    fn busy(&self) -> usize {
        self.pods("/metadata", |it| {
            let says_so = it["uid"].as_str().is_some_and(is_busy);
            let is_labelled = it["labels"]["state"] == "busy";
            it["labels"]["app"] == "web" && if self.asks { says_so } else { is_labelled }
        })
    }

    /// The active pods with this value at a path.
    fn pods(&self, path: &str, is: impl Fn(&Value) -> bool) -> usize {
        let pods = self.world.cluster.objects(Kind::Pod);
        let active = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        active
            .filter(|pod| pod.pointer(path).is_some_and(&is))
            .count()
    }
}

#[test]
fn other_controller_spares_busy_pods_and_no_advice_outlives_the_preference() {
    for seed in 0..WORLDS {
        let is_calm = seed.is_multiple_of(2);
        let mut beside = Beside::new(seed, is_calm, None);
        let run = |beside: &mut Beside, seconds| {
            let verdict = beside.run(seconds);
            verdict.unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"));
        };
        run(&mut beside, SCALED);
        let before = beside.busy();
        beside.patch(&json!({"spec": {"replicas": 4}}));
        run(&mut beside, WITHDRAWN - SCALED);
        assert_eq!(
            beside.busy(),
            before.min(4),
            "seed {seed}: of {before} busy pods"
        );
        let [order, costs] = PREFERENCES.map(|(annotation, _)| annotation);
        beside.patch(&json!({"metadata": {"annotations": {order: null, costs: null}}}));
        beside.world.heal();
        run(&mut beside, END - WITHDRAWN);
        let advised = beside.pods("/metadata/annotations", |it| !it[ADVISED_COST].is_null());
        assert_eq!(advised, 0, "seed {seed}");
        let calls = &beside.limits.calls;
        assert!(calls["advise_pod"] > 0, "seed {seed}: {calls:?}");
        assert_eq!(
            calls.len(),
            1,
            "seed {seed}: it writes costs alone, and reads nothing: {calls:?}"
        );
    }
}

#[test]
fn malicious_servers_advise_no_other_pods_unless_agents_obey() {
    let run = |seed, is_obeyed| {
        let attack = Some(Attack::AdviseOthers);
        let mut beside = Beside::new(seed, false, Some(Malice { attack, is_obeyed }));
        beside.run(300)
    };
    for seed in 0..WORLDS / 4 {
        run(seed, false).unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}"));
    }
    let obeys = (0..OBEYED).filter_map(|seed| run(seed, true).err());
    let exceeded: Vec<_> = obeys.map(|(limit, _)| limit).collect();
    assert!(exceeded.contains(&"advice"), "{exceeded:?}");
}
