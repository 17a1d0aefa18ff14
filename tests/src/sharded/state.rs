//! The state of a world.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    time::Duration,
};

use agent_core::{
    assignment::{self, Assignment},
    creates::CreateLimits,
    lease::{self, Lease, Record},
    shard::Shard,
};
use jiff::Timestamp;
use serde_json::json;

use super::happening::{Happening, Slot};
use crate::{
    actors::CREATES, chaos::Chaos, encounters::Encounters, mutants, rng::Rng, schedule::Schedule,
    world::World,
};

/// The time after its last renewal at which a Lease may be taken. A third of it is longer than any write of the world takes.
pub(super) const LEASE: Duration = Duration::from_secs(9);
/// Create limits in the same relation to [`LEASE`] as the defaults to the default Lease: the Lease limits each create.
pub(super) const CREATES_LIMITED_BY_LEASE: CreateLimits = CreateLimits {
    timeout: Duration::from_secs(12),
    margin: Duration::from_millis(4800),
};
/// The maximum transit time of a call, its answer or a frame.
pub(super) const TRANSIT_MAX: Duration = Duration::from_millis(200);
/// The number of namespaces, with a ReplicaSet in each.
pub(super) const NAMESPACES: usize = 8;
/// The maximum number of pods of a ReplicaSet.
const PODS_MAX: usize = 40;

/// A break of the world that its checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Agents do not check the Lease of their number of shards.
    IgnoreLayout,
    /// Calls leave after the expiry of the Lease.
    IgnoreFence,
    /// A process gives back the Lease of a shard before its agent has ended.
    GiveBackEarly,
    /// Some agents hash namespaces differently.
    HashOtherwise,
    /// Agents do not give up creates after their timeout.
    IgnoreTimeout,
    /// A process takes a Lease that another holds.
    TakeHeldLease,
    /// Agents do not know the maximum delay of a create after its timeout.
    IgnoreMargin,
}

/// A world, and the processes whose agents act in it. Its owner steps it.
#[derive(Debug)]
pub struct Shared {
    pub(super) world: World,
    pub(super) leases: BTreeMap<String, Record>,
    pub(super) schedule: Schedule<Happening>,
    pub(super) rng: Rng,
    pub(super) mutant: Option<Mutant>,
    /// The number of refused or unanswered requests per thousand.
    pub(super) faults: u64,
    /// The maximum duration of a create.
    pub(super) creates: CreateLimits,
    pub(super) processes: BTreeMap<u64, Process>,
    /// The process and the shard of each agent, by its life.
    pub(super) agents: BTreeMap<u64, (u64, u16)>,
    /// The stopped processes, with the events that have reached them meanwhile.
    pub(super) paused: BTreeMap<u64, Vec<Happening>>,
    /// The number of created pods in each namespace.
    pub(super) created: BTreeMap<String, usize>,
    pub(super) wanted: BTreeMap<String, usize>,
    pub(super) numbers: u64,
}

/// A process, with the Leases that it holds or requests.
#[derive(Debug)]
pub(super) struct Process {
    /// `None` for a process that serves the whole cluster.
    pub(super) shards: Option<NonZeroU16>,
    pub(super) names: assignment::AssignmentConfig,
    /// The Lease of the number of shards, or of the whole cluster.
    pub(super) base: Held,
    pub(super) member: Option<Held>,
    pub(super) assignment: Assignment,
    /// By their numbers; the whole cluster has number 0.
    pub(super) wanted: BTreeMap<u16, Wanted>,
    pub(super) next_list: Option<Timestamp>,
    pub(super) is_stopping: bool,
    pub(super) served: Timestamp,
    /// Whether the process hashes namespaces differently.
    pub(super) is_odd: bool,
}

/// A Lease, and the number that distinguishes its answers from answers to an older Lease of its place.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) lease: Lease,
    pub(super) name: String,
    pub(super) number: u64,
}

/// A shard that a process serves or waits for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// `None` if the base Lease serves the whole cluster.
    pub(super) held: Option<Held>,
    pub(super) agent: Option<u64>,
    pub(super) is_stopping: bool,
}

// === impl Mutant ===

impl Mutant {
    /// The break in the world for this mutant, if there is one.
    const fn of_world(self) -> Option<mutants::Mutant> {
        match self {
            Self::IgnoreFence => Some(mutants::Mutant::IgnoreLeaseLoss),
            Self::IgnoreTimeout => Some(mutants::Mutant::IgnoreTimeout),
            Self::IgnoreLayout
            | Self::GiveBackEarly
            | Self::HashOtherwise
            | Self::TakeHeldLease
            | Self::IgnoreMargin => None,
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Returns a world with two starting servers, and no process.
    #[must_use]
    pub fn new(seed: u64, faults: u64, mutant: Option<Mutant>) -> Self {
        let chaos = Chaos {
            network_max: TRANSIT_MAX,
            call_max: TRANSIT_MAX,
            watch_max: TRANSIT_MAX,
            window: 64,
            refuse: faults,
            lose_reply: faults,
            be_late: 50,
            lose_frames: 0,
            lose_calls: 0,
            servers: 2,
            operations_max: 64,
            ..Chaos::calm()
        };
        let of_world = mutant.and_then(Mutant::of_world);
        let world = World::new(seed, Rng::new(seed), chaos, of_world).without_agents();
        let mut shared = Self {
            schedule: Schedule::new(world.now()),
            world,
            leases: BTreeMap::new(),
            rng: Rng::new(!seed),
            mutant,
            faults,
            creates: CREATES,
            processes: BTreeMap::new(),
            agents: BTreeMap::new(),
            paused: BTreeMap::new(),
            created: BTreeMap::new(),
            wanted: BTreeMap::new(),
            numbers: 0,
        };
        // Either its own timeout limits a create, or the Lease.
        shared.limit_creates(match seed % 2 {
            0 => CREATES,
            _ => CREATES_LIMITED_BY_LEASE,
        });
        (0..NAMESPACES).for_each(|number| shared.populate(number));
        shared
    }

    pub(super) const fn limit_creates(&mut self, creates: CreateLimits) {
        self.creates = creates;
        self.world.creates = Some(creates);
    }

    fn populate(&mut self, number: usize) {
        let namespace = namespace(number);
        let labels = json!({"app": "web"});
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {"namespace": namespace, "name": "web"},
                "spec": {
                    "replicas": 0, "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "web", "image": "web"}]},
                    },
                },
            }),
        ];
        for object in objects {
            self.world
                .cluster
                .create(object)
                .expect("nothing refuses it");
        }
        self.wanted.insert(namespace, 0);
    }

    /// Returns the time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    pub(super) fn note(&mut self, what: &'static str) {
        self.world.encounters.note(what);
    }

    /// Returns the encounters of the world.
    #[must_use]
    pub const fn encounters(&self) -> &Encounters {
        &self.world.encounters
    }

    /// Scales up a namespace. No pod is ever deleted, so each duplicate create is one pod too many.
    pub(super) fn scale_up_in(&mut self, number: usize, more: usize) {
        let namespace = namespace(number);
        let replicas = (self.wanted[&namespace] + more).min(PODS_MAX);
        let patch = json!({"spec": {"replicas": replicas}});
        let kind = agent_fake::Kind::ReplicaSet;
        let scaled = self.world.cluster.patch(kind, &namespace, "web", &patch);
        scaled.expect("it is there");
        self.wanted.insert(namespace, replicas);
    }

    pub(super) const fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn transit(&mut self) -> Duration {
        self.rng.delay(TRANSIT_MAX)
    }

    /// The names of the Leases of a process.
    pub(super) fn names(
        &self,
        life: u64,
        shards: Option<NonZeroU16>,
    ) -> assignment::AssignmentConfig {
        let margin = if self.is_mutant(Mutant::IgnoreMargin) {
            Duration::ZERO
        } else {
            self.creates.margin
        };
        assignment::AssignmentConfig {
            lease: lease::LeaseConfig {
                identity: format!("agent-{life}"),
                namespace: "decree".into(),
                name: "decree-agent".into(),
                duration: LEASE,
                margin,
                shared: false,
            },
            shards: shards.unwrap_or(NonZeroU16::MIN),
        }
    }

    pub(super) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// The name of a namespace by its number.
pub(super) fn namespace(number: usize) -> String {
    format!("team-{number}")
}

// === impl Process ===

impl Process {
    /// The future deadline of a Lease or a plan.
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let shards = self.wanted.values().filter_map(|it| it.held.as_ref());
        let held = [Some(&self.base), self.member.as_ref()];
        let held = held.into_iter().flatten().chain(shards);
        let leases = held.map(|it| it.lease.poll_timeout());
        let plan = self.member.is_some().then_some(()).and_then(|()| {
            let due = self.assignment.poll_timeout(self.served);
            due.into_iter().chain(self.next_list).min()
        });
        let due = leases.filter(|due| *due != Timestamp::MAX).chain(plan);
        due.filter(|due| *due > self.served).min()
    }

    pub(super) fn held_mut(&mut self, slot: Slot) -> Option<&mut Held> {
        match slot {
            Slot::Base => Some(&mut self.base),
            Slot::Member => self.member.as_mut(),
            Slot::Shard(shard) => self.wanted.get_mut(&shard)?.held.as_mut(),
        }
    }
}

/// The namespaces of a shard; all namespaces without one.
pub(super) fn namespaces_of(shard: Option<Shard>) -> BTreeSet<String> {
    let all = (0..NAMESPACES).map(namespace);
    all.filter(|name| shard.is_none_or(|shard| shard.contains(name)))
        .collect()
}
