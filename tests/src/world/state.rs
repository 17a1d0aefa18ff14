//! The state of a world. Every other file of the world depends on this one.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    api, budget,
    watch::{Items, List},
};
use agent_fake::{Cluster, ClusterConfig, Kind};
use decree_api::v1;
use jiff::{SignedDuration, Timestamp};

use super::{boundaries::Boundaries, caches::Caches, happening::Happening, leadership::Leadership};
use crate::{
    actors::{AgentActor, Clock, DecisionServer, malicious::Malice},
    builders::pod,
    chaos::{Chaos, DRIFT_MAX, Fault},
    encounters::Encounters,
    facts::Fact,
    ledger::Ledger,
    mutants::Mutant,
    rng::Rng,
    schedule::Schedule,
    trace::Trace,
    workloads::{Act, BYSTANDER, MISFIT},
};

/// A simulated world. Its owner steps it; checkers inspect it between steps.
#[derive(Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// The number of the world among the worlds that share the servers.
    pub(super) number: u64,
    /// The live, acting agents, by their lives: one, or several if one leads and the others do not know it yet.
    pub agents: BTreeMap<u64, AgentActor>,
    /// The live servers; `None` for a dead one. While another world has the shared servers, all are `None`.
    pub servers: Vec<Option<DecisionServer>>,
    /// The servers that died in this step.
    pub(super) killed: Vec<usize>,
    /// The effects so far, and their causes.
    pub ledger: Ledger,
    /// The facts of the last step.
    pub facts: Vec<Fact>,
    /// The current faults and delays.
    pub chaos: Chaos,
    /// The encounters with the protocol so far.
    pub encounters: Encounters,
    /// The trace, for people.
    pub trace: Trace,
    pub(super) mutant: Option<Mutant>,
    /// The malice of servers that start, if they are malicious.
    pub(super) malice: Option<Malice>,
    /// Whether each call is a fact, for the limits of what arrives at the cluster. With malicious servers, each is.
    pub is_witnessed: bool,
    /// Whether agents that start read nodes.
    pub reads_nodes: bool,
    /// Whether agents that start advise another controller.
    pub advises: bool,
    /// The pods that agents have asked for their costs; `None` if agents that start ask none.
    pub asked: Option<AskedPods>,
    /// The budget of agents that start.
    pub(super) budget: budget::BudgetConfig,
    /// The first list of each kind, and the newest watch with an event: the state of mutants.
    pub(super) first_lists: BTreeMap<api::Kind, Items>,
    pub(super) newest_told: u64,
    pub(super) rng: Rng,
    pub(super) schedule: Schedule<Happening>,
    /// The agent and the server of each connection.
    pub(super) routes: BTreeMap<u64, Route>,
    /// The version of the first list of each kind on each connection.
    pub(super) first_listed: BTreeMap<(u64, i32), u64>,
    /// The silent connections.
    pub(super) silent: BTreeMap<u64, Silence>,
    /// The agents whose processes are stopped, with the events that have reached them meanwhile.
    pub(super) paused: BTreeMap<u64, Vec<Happening>>,
    pub(super) leadership: Leadership,
    pub(super) boundaries: Boundaries,
    /// The caches that serve watches.
    pub(super) caches: Caches,
    /// The backup of the store, and the remains of a lost store.
    pub(super) past: Past,
    pub(super) incidents: u32,
    pub(super) lives: u64,
    pub(super) connections: u64,
    pub(super) watches: u64,
}

/// The maximum start time of a process.
const STARTS_WITHIN: Duration = Duration::from_millis(50);
/// The maximum number of connections in a cluster.
const CONNECTIONS_MAX: u64 = 1_000_000;

/// The pods that agents have asked for their costs, and how pods answer.
#[derive(Clone, Debug, Default)]
pub struct AskedPods {
    /// Whether pods answer late, twice, wrongly or never.
    pub is_troubled: bool,
    /// The pods since the last look.
    pub pods: Vec<v1::ObjectRef>,
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) life: u64,
    pub(super) epoch: i64,
    pub(super) server: usize,
}

/// The silent directions of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) to_server: bool,
    pub(super) to_agent: bool,
}

/// The state of lost stores.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) backup: Option<Box<Cluster>>,
    /// The cache of an API server that keeps running during a restore of its store.
    pub(super) lost: Option<Box<Lost>>,
    /// The highest version of a lost store.
    pub(super) newest: u64,
}

/// The lists of a lost store, and its version.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) lists: [List; 2],
    pub(super) version: u64,
}

impl World {
    /// Returns a world whose servers and agents are about to start.
    pub fn new(seed: u64, rng: Rng, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        let servers = (0..chaos.servers).map(|_| None).collect();
        Self::with_servers(servers, 0, seed, rng, chaos, mutant)
    }

    /// Returns a world whose agents are about to start, and which will share the servers of another world.
    pub fn beside(number: u64, seed: u64, rng: Rng, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        Self::with_servers(Vec::new(), number, seed, rng, chaos, mutant)
    }

    fn with_servers(
        servers: Vec<Option<DecisionServer>>,
        number: u64,
        seed: u64,
        mut rng: Rng,
        chaos: Chaos,
        mutant: Option<Mutant>,
    ) -> Self {
        let config = ClusterConfig {
            seed,
            ..crate::workloads::cluster()
        };
        let mut schedule = Schedule::new(config.start);
        for server in 0..servers.len() {
            let delay = rng.delay(STARTS_WITHIN);
            schedule.after(delay, Happening::ServerStarts { server });
        }
        for _ in 0..=chaos.standbys {
            schedule.after(rng.delay(STARTS_WITHIN), Happening::AgentStarts);
        }
        let lists = mutant == Some(Mutant::ListFromCache);
        let caches = Caches::new(&mut rng, chaos.api_servers, chaos.cache_lag, lists);
        Self {
            cluster: populated(config, chaos.bad_object),
            number,
            caches,
            agents: BTreeMap::new(),
            servers,
            killed: Vec::new(),
            ledger: Ledger::default(),
            facts: Vec::new(),
            past: Past::default(),
            incidents: chaos.incidents,
            chaos,
            encounters: Encounters::default(),
            routes: BTreeMap::new(),
            first_listed: BTreeMap::new(),
            silent: BTreeMap::new(),
            paused: BTreeMap::new(),
            leadership: Leadership::default(),
            boundaries: Boundaries::default(),
            trace: Trace::default(),
            mutant,
            malice: None,
            is_witnessed: false,
            reads_nodes: false,
            advises: false,
            asked: None,
            budget: budget::BudgetConfig::default(),
            first_lists: BTreeMap::new(),
            newest_told: 0,
            rng,
            schedule,
            lives: 0,
            connections: number * CONNECTIONS_MAX,
            watches: 0,
        }
    }

    /// Returns the time.
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    /// Makes all servers that start from now on malicious, or honest.
    pub const fn corrupt_servers(&mut self, malice: Option<Malice>) {
        self.malice = malice;
    }

    /// Sets the budget of agents.
    pub const fn with_budget(mut self, budget: budget::BudgetConfig) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the lag of the watch caches of all API servers: of pods, and of ReplicaSets.
    pub fn with_caches_behind(mut self, pods: Duration, replica_sets: Duration) -> Self {
        self.caches.lag(pods, replica_sets);
        self
    }

    /// Plans acts of users, each after a delay.
    pub fn with_plan(mut self, plan: Vec<(Duration, Act)>) -> Self {
        plan.into_iter()
            .for_each(|(after, act)| self.plan(after, act));
        self
    }

    /// Plans an act of a user after a delay.
    pub fn plan(&mut self, after: Duration, act: Act) {
        self.schedule.after(after, Happening::Act { act, tries: 0 });
    }

    /// Plans a fault after a delay.
    pub fn plan_fault(&mut self, after: Duration, fault: Fault) {
        self.schedule.after(after, Happening::Fault(fault));
    }

    /// Notes the desired replicas of the ReplicaSets.
    pub(super) fn note_wanted(&mut self) {
        let sets: Vec<_> = self.cluster.objects(Kind::ReplicaSet).cloned().collect();
        sets.iter().for_each(|set| self.ledger.note_wanted(set));
    }

    /// Plans faults, each after a delay.
    pub fn with_faults(mut self, faults: Vec<(Duration, Fault)>) -> Self {
        for (after, fault) in faults {
            self.plan_fault(after, fault);
        }
        self
    }

    /// Ends all faults except silent links, which the machines find by their silence.
    pub fn heal(&mut self) {
        self.chaos = self.chaos.healed();
        self.incidents = 0;
    }

    /// Returns whether an act of a user or a fault is still planned.
    pub fn is_planned(&self) -> bool {
        self.schedule
            .count(|it| matches!(it, Happening::Act { .. } | Happening::Fault(_)))
            > 0
    }

    /// Returns whether a call, an answer or a watch event is in flight.
    pub fn is_busy(&self) -> bool {
        let busy = |it: &Happening| {
            matches!(
                it,
                Happening::CallArrives { .. }
                    | Happening::Reply { .. }
                    | Happening::WatchTells { .. }
                    | Happening::NodesRead { .. }
            )
        };
        self.schedule.count(busy) > 0 || !self.paused.is_empty()
    }

    /// Draws the clocks of a new process.
    pub(super) fn draw_clock(&mut self) -> Clock {
        let most = i32::from(self.chaos.clock_drift);
        let mut drift = *self.rng.pick(&[-most, 0, most]);
        if self.is_mutant(Mutant::LetClocksRunApart) {
            // The first process is slow, and the next is fast.
            drift = 75 * i32::from(DRIFT_MAX);
            drift *= if self.lives.is_multiple_of(2) { 1 } else { -1 };
        }
        Clock::new(self.now(), self.draw_offset(), drift)
    }

    /// Draws the offset of a wall clock from the clock of the cluster.
    pub(super) fn draw_offset(&mut self) -> SignedDuration {
        let most = self.chaos.clock_skew;
        let offset = self.rng.delay(2 * most);
        SignedDuration::try_from(offset).unwrap_or_default()
            - SignedDuration::try_from(most).unwrap_or_default()
    }

    /// Returns whether the process of an agent is stopped.
    pub fn is_paused(&self, life: u64) -> bool {
        self.paused.contains_key(&life)
    }

    /// Returns whether this world has opened a connection, which may have ended.
    pub fn has_opened(&self, connection: u64) -> bool {
        self.routes.contains_key(&connection)
    }

    /// Returns the epochs of the sessions of this world on the server of a connection, by their connections.
    pub fn epochs_beside(&self, connection: u64) -> impl Iterator<Item = (u64, i64)> {
        let server = self.routes.get(&connection).map(|route| route.server);
        let routes = self.routes.iter();
        let beside = routes
            .filter(move |(other, route)| **other != connection && Some(route.server) == server);
        beside.map(|(other, route)| (*other, route.epoch))
    }

    pub(super) fn living(&mut self, life: u64) -> Option<&mut AgentActor> {
        self.agents.get_mut(&life)
    }

    /// An agent, with the time by its own clock.
    pub(super) fn living_at(&mut self, life: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let now = self.now();
        let actor = self.agents.get_mut(&life)?;
        Some((actor.local(now), actor))
    }

    /// The agent of a connection, unless it has left the connection, with the time by its own clock.
    pub(super) fn agent_of(&mut self, connection: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let life = self.routes.get(&connection)?.life;
        let found = self.living_at(life)?;
        Some(found).filter(|(_, actor)| actor.connection == Some(connection))
    }

    /// The server of a connection.
    pub(super) fn server_of(&mut self, connection: u64) -> Option<&mut DecisionServer> {
        let server = self.routes.get(&connection)?.server;
        self.servers[server].as_mut()
    }

    /// Whether the world has this mutant.
    pub(super) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// A cluster with unrelated objects.
fn populated(config: ClusterConfig, bad_object: bool) -> Cluster {
    let mut cluster = Cluster::new(config);
    let bystander = pod(BYSTANDER).labelled("app", "other").on("aside").build();
    cluster.create(bystander).expect("nothing refuses it");
    if bad_object {
        let mut misfit = pod(MISFIT).labelled("app", "other").build();
        // The contract limits uids to 128 characters.
        misfit["metadata"]["uid"] = "u".repeat(129).into();
        cluster.restore(misfit).expect("nothing refuses it");
    }
    cluster
}
