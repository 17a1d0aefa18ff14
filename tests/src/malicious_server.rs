//! A malicious server, for an hour of virtual time. The agent's acts stay within the [`Limits`], and an honest server that
//! replaces it can restore the desired state.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    actors::malicious::Malice,
    builders::{pod, replica_set, with_preferences, with_surge},
    chaos::Chaos,
    depth::number,
    encounters::Encounters,
    failure::{Failure, traced},
    invariants::i1_bystander_lives,
    limits::{Limits, Verdict},
    rest::i8_as_wanted,
    rng::Rng,
    workloads::{Act, NAMESPACE},
    world::World,
};

/// The number of hours in a test run, unless `DECREE_MALICIOUS_RUNS` sets it.
const RUNS: u64 = 4;
/// The duration of the malicious server.
const SPAN: SignedDuration = SignedDuration::from_hours(1);
/// The time for the world to reach the desired state afterwards: the longest wait that a server can impose on an agent, and the
/// wait after 16 failed syncs in a row.
const REST_WITHIN: SignedDuration = SignedDuration::from_mins(20);
/// More steps than a correctly paced agent takes in an hour.
const STEPS_MAX: u64 = 2_000_000;
/// The namespace of pods that match ReplicaSets of another namespace.
const ELSEWHERE: &str = "kube-system";

/// A successful hour.
#[derive(Clone, Debug)]
pub struct Survived {
    /// The number of steps.
    pub steps: u64,
    /// The encounters with the protocol.
    pub encounters: Encounters,
    /// The number of effective calls of each kind.
    pub calls: Vec<(&'static str, u64)>,
}

/// Runs `DECREE_MALICIOUS_RUNS` hours, from `DECREE_MALICIOUS_SEED` on. Returns their results.
///
/// # Panics
/// At the first exceeded limit, with the seed.
pub fn check() -> Vec<Survived> {
    let runs = number("DECREE_MALICIOUS_RUNS").unwrap_or(RUNS);
    let first: u64 = number("DECREE_MALICIOUS_SEED").unwrap_or(0);
    let seeds = first..first.saturating_add(runs);
    let malice = Malice::default();
    let survived = seeds.map(|seed| {
        traced(|is_recorded| {
            let mut hour = Hour::new(seed, malice);
            if is_recorded {
                hour.world.trace.record();
            }
            hour.run()
        })
    });
    let survived = survived.map(|it| it.unwrap_or_else(|failure| panic!("{failure}")));
    survived.collect()
}

/// Runs one hour.
///
/// # Errors
/// If a limit is exceeded.
pub fn run(seed: u64, malice: Malice) -> Result<Survived, Failure> {
    Hour::new(seed, malice).run()
}

/// An hour with a malicious server.
#[derive(Debug)]
struct Hour {
    seed: u64,
    world: World,
    limits: Limits,
    steps: u64,
}

impl Hour {
    fn new(seed: u64, malice: Malice) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(31));
        let plan = plan(&mut rng);
        let chaos = chaos(&mut rng);
        let mut world = World::new(seed, rng, chaos, None).with_plan(plan);
        world.reads_nodes = true;
        world.corrupt_servers(Some(malice));
        Self {
            seed,
            world,
            limits: Limits::default(),
            steps: 0,
        }
    }

    fn run(mut self) -> Result<Survived, Failure> {
        let verdict = self.live();
        let seed = self.seed;
        verdict.map_err(|(checker, text)| Failure {
            checker,
            text,
            world: format!("the hour of seed {seed}"),
            repeat: format!(
                "DECREE_MALICIOUS_SEED={seed} DECREE_MALICIOUS_RUNS=1 cargo test -p tests --test sim malicious"
            ),
            trace: std::mem::take(&mut self.world.trace),
        })?;
        Ok(Survived {
            steps: self.steps,
            encounters: self.world.encounters,
            calls: self.limits.calls.into_iter().collect(),
        })
    }

    fn live(&mut self) -> Verdict {
        let until = self.world.now() + SPAN;
        while self.step(until)? {}
        self.world.corrupt_servers(None);
        self.world.heal();
        self.world.kill_server(0);
        let until = self.world.now() + REST_WITHIN;
        while let Err(text) = i8_as_wanted(&self.world) {
            if !self.step(until)? {
                return Err(("comes_to_rest", text));
            }
        }
        outsiders_stay(&self.world)
    }

    fn step(&mut self, until: Timestamp) -> Result<bool, (&'static str, String)> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            let text = format!("{STEPS_MAX} steps were not enough");
            return Err(("paced_work", text));
        }
        let stepped = self.world.step(until);
        self.limits.judge(&self.world)?;
        i1_bystander_lives(&self.world).map_err(|text| ("bystander_lives", text))?;
        Ok(stepped)
    }
}

/// Draws a world with few faults, so that faults come from the server. No delay exceeds the limits.
#[must_use]
pub fn chaos(rng: &mut Rng) -> Chaos {
    let delays = [2, 20, 100].map(Duration::from_millis);
    let delay = *rng.pick(&delays);
    Chaos {
        network_max: delay,
        call_max: delay,
        watch_max: delay,
        lose_reply: *rng.pick(&[0, 20]),
        be_late: *rng.pick(&[0, 20]),
        ..Chaos::calm()
    }
}

/// Draws the acts of people in the hour: ReplicaSets of two namespaces, unrelated pods, and pods that come and go.
fn plan(rng: &mut Rng) -> Vec<(Duration, Act)> {
    let elsewhere = |mut object: serde_json::Value| {
        object["metadata"]["namespace"] = json!(ELSEWHERE);
        Act::Create(object)
    };
    let orphan = |name: String| pod(&name).labelled("app", "web").build();
    let mut acts = vec![
        Act::Create(with_surge(replica_set("web")).replicas(4).build()),
        Act::Create(with_preferences(replica_set("api").replicas(2)).build()),
        elsewhere(replica_set("web").replicas(3).build()),
        elsewhere(pod("outsider").labelled("app", "api").build()),
    ];
    acts.extend((0..3).map(|number| Act::Create(orphan(format!("orphan-{number}")))));
    let start = acts
        .into_iter()
        .map(|act| (rng.delay(Duration::from_secs(1)), act));
    let mut plan: Vec<_> = start.collect();
    let mut at = Duration::from_secs(20);
    while at < Duration::from_secs(3_540) {
        plan.push((at, draw_act(rng, at)));
        at += Duration::from_secs(1) + rng.delay(Duration::from_secs(60));
    }
    plan.push((Duration::from_secs(3_550), Act::FreeNodes));
    plan
}

fn draw_act(rng: &mut Rng, at: Duration) -> Act {
    let sets = ["web", "web", "api"];
    match rng.between(0, 12) {
        0..4 => Act::scale(rng.pick::<&str>(&sets), *rng.pick(&[0, 1, 2, 3, 5, 8])),
        4 => Act::KillPod,
        5 => Act::DeletePod,
        6 => Act::FailPod,
        9.. => Act::ChangeNode {
            cordoned: rng.chance(500),
            leaving: rng.chance(500),
        },
        7 => Act::Relabel {
            value: (*rng.pick(&["web", "api", "other"])).to_owned(),
        },
        _ => {
            let name = format!("orphan-{}", at.as_millis());
            let app = *rng.pick(&["web", "api", "nobody"]);
            Act::Create(pod(&name).labelled("app", app).build())
        }
    }
}

/// The pod that matches a ReplicaSet of another namespace exists, without an owner.
fn outsiders_stay(world: &World) -> Verdict {
    let mut pods = world.cluster.objects(agent_fake::Kind::Pod);
    let outsider = pods.find(|pod| pod["metadata"]["name"] == "outsider");
    match outsider {
        Some(pod) if pod["metadata"]["ownerReferences"].is_null() => Ok(()),
        other => Err((
            "outsiders_stay",
            format!("the outsider is {other:?} beside {NAMESPACE}"),
        )),
    }
}
