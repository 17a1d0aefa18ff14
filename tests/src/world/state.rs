//! What a world consists of. Every other file of it builds on this one.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{api, budget, creates::CreateLimits, watch::Items};
use agent_fake::{Cluster, ClusterConfig, Kind};
use jiff::{SignedDuration, Timestamp};

use super::{
    boundaries::Boundaries, caches::Caches, happening::Happening, leadership::Leadership,
    past::Past,
};
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

/// A simulated world. Its owner steps it; checkers look at it between steps.
#[derive(Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// Its number among those that share the servers.
    pub(super) number: u64,
    /// The agents that live and act, by their lives: one, or several where one leads and others do not know it yet.
    pub agents: BTreeMap<u64, AgentActor>,
    /// The servers; those that live. While a world that shares them has them at hand, the others have none.
    pub servers: Vec<Option<DecisionServer>>,
    /// The servers that have died in this step.
    pub(super) killed: Vec<usize>,
    /// What has been done so far, and why.
    pub ledger: Ledger,
    /// What happened in the last step.
    pub facts: Vec<Fact>,
    /// How rough it is at this moment.
    pub chaos: Chaos,
    /// What of the protocol was met so far.
    pub encounters: Encounters,
    /// What was recorded, for people.
    pub trace: Trace,
    pub(super) mutant: Option<Mutant>,
    /// Whether servers that start are malicious, and how.
    pub(super) malice: Option<Malice>,
    /// The budget of agents that start.
    pub(super) budget: budget::BudgetConfig,
    /// Where a create has a timeout of its own: how much later than that it may take effect at most.
    pub creates: Option<CreateLimits>,
    /// The first list of each kind, and the newest watch of which anything was told: what mutants keep in mind.
    pub(super) first_lists: BTreeMap<api::Kind, Items>,
    pub(super) newest_told: u64,
    pub(super) rng: Rng,
    pub(super) schedule: Schedule<Happening>,
    /// Which agent each connection is of, and which server it leads to.
    pub(super) routes: BTreeMap<u64, Route>,
    /// The version of the first list of each kind on each connection.
    pub(super) first_listed: BTreeMap<(u64, i32), u64>,
    /// The connections that have fallen silent.
    pub(super) silent: BTreeMap<u64, Silence>,
    /// The agents whose processes are stopped, with what has reached them meanwhile.
    pub(super) paused: BTreeMap<u64, Vec<Happening>>,
    pub(super) leadership: Leadership,
    pub(super) boundaries: Boundaries,
    /// The caches that watches are served from.
    pub(super) caches: Caches,
    /// The backup of the store, and what is left of a store that was lost.
    pub(super) past: Past,
    pub(super) incidents: u32,
    pub(super) lives: u64,
    pub(super) connections: u64,
    pub(super) watches: u64,
}

/// How long processes take to start.
const STARTS_WITHIN: Duration = Duration::from_millis(50);
/// How many connections there are in a cluster at most.
const CONNECTIONS_MAX: u64 = 1_000_000;

/// The ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) life: u64,
    pub(super) epoch: i64,
    pub(super) server: usize,
}

/// Which ways of a connection are silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) to_server: bool,
    pub(super) to_agent: bool,
}

// === impl World ===

impl World {
    /// Returns a world whose servers and agents are about to start.
    #[must_use]
    pub fn new(seed: u64, rng: Rng, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        let servers = (0..chaos.servers).map(|_| None).collect();
        Self::with_servers(servers, 0, seed, rng, chaos, mutant)
    }

    /// Returns a world whose agents are about to start, and which is to be handed the servers of another one.
    #[must_use]
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
        let lists = chaos.foreign > 0 || mutant == Some(Mutant::ListFromCache);
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
            budget: budget::BudgetConfig::default(),
            creates: None,
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
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    /// Lets all servers that start be malicious, or none from here on.
    pub const fn corrupt_servers(&mut self, malice: Option<Malice>) {
        self.malice = malice;
    }

    /// Gives agents another budget than they have by default.
    #[must_use]
    pub const fn with_budget(mut self, budget: budget::BudgetConfig) -> Self {
        self.budget = budget;
        self
    }

    /// Lets the watch caches of all API servers be behind by these times: those of pods, and those of ReplicaSets.
    #[must_use]
    pub fn with_caches_behind(mut self, pods: Duration, replica_sets: Duration) -> Self {
        self.caches.lag(pods, replica_sets);
        self
    }

    /// Lets users act, each after a while.
    #[must_use]
    pub fn with_plan(mut self, plan: Vec<(Duration, Act)>) -> Self {
        plan.into_iter()
            .for_each(|(after, act)| self.plan(after, act));
        self
    }

    /// Lets a user act after a while.
    pub fn plan(&mut self, after: Duration, act: Act) {
        self.schedule.after(after, Happening::Act { act, tries: 0 });
    }

    /// Lets something go wrong after a while.
    pub fn plan_fault(&mut self, after: Duration, fault: Fault) {
        self.schedule.after(after, Happening::Fault(fault));
    }

    /// Notes what the ReplicaSets want.
    pub(super) fn note_wanted(&mut self) {
        let sets: Vec<_> = self.cluster.objects(Kind::ReplicaSet).cloned().collect();
        sets.iter().for_each(|set| self.ledger.note_wanted(set));
    }

    /// Lets things go wrong, each after a while.
    #[must_use]
    pub fn with_faults(mut self, faults: Vec<(Duration, Fault)>) -> Self {
        for (after, fault) in faults {
            self.plan_fault(after, fault);
        }
        self
    }

    /// Ends all faults, but for links that have fallen silent: those are found by their silence.
    pub fn heal(&mut self) {
        self.chaos = self.chaos.healed();
        self.incidents = 0;
    }

    /// Returns whether a user's act or a fault is still to come.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.schedule
            .count(|it| matches!(it, Happening::Act { .. } | Happening::Fault(_)))
            > 0
    }

    /// Returns whether a call, an answer or a watch event is on its way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let busy = |it: &Happening| {
            matches!(
                it,
                Happening::CallArrives { .. }
                    | Happening::Reply { .. }
                    | Happening::WatchTells { .. }
            )
        };
        self.schedule.count(busy) > 0 || !self.paused.is_empty()
    }

    /// Draws the clocks of a process that begins.
    pub(super) fn draw_clock(&mut self) -> Clock {
        let most = i32::from(self.chaos.clock_drift);
        let mut drift = *self.rng.pick(&[-most, 0, most]);
        if self.is_mutant(Mutant::LetClocksRunApart) {
            // The first is slow, and the next is fast.
            drift = 75 * i32::from(DRIFT_MAX);
            drift *= if self.lives.is_multiple_of(2) { 1 } else { -1 };
        }
        Clock::new(self.now(), self.draw_offset(), drift)
    }

    /// Draws by how much a wall clock differs from that of the cluster.
    pub(super) fn draw_offset(&mut self) -> SignedDuration {
        let most = self.chaos.clock_skew;
        let offset = self.rng.delay(2 * most);
        SignedDuration::try_from(offset).unwrap_or_default()
            - SignedDuration::try_from(most).unwrap_or_default()
    }

    /// Returns whether the process of an agent is stopped.
    #[must_use]
    pub fn is_paused(&self, life: u64) -> bool {
        self.paused.contains_key(&life)
    }

    /// Returns whether a connection is one of this world, open or not.
    #[must_use]
    pub fn has_opened(&self, connection: u64) -> bool {
        self.routes.contains_key(&connection)
    }

    /// Returns the epochs of the sessions of this world that were opened on the server of a connection, by their connections.
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

    /// Returns an agent with the time by its own clock.
    pub(super) fn living_at(&mut self, life: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let now = self.now();
        let actor = self.agents.get_mut(&life)?;
        Some((actor.local(now), actor))
    }

    /// Returns the agent of a connection, unless it has left it, with the time by its own clock.
    pub(super) fn agent_of(&mut self, connection: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let life = self.routes.get(&connection)?.life;
        let found = self.living_at(life)?;
        Some(found).filter(|(_, actor)| actor.connection == Some(connection))
    }

    /// Returns the server that a connection leads to.
    pub(super) fn server_of(&mut self, connection: u64) -> Option<&mut DecisionServer> {
        let server = self.routes.get(&connection)?.server;
        self.servers[server].as_mut()
    }

    /// Returns whether the world is broken in this way.
    pub(super) fn is_mutant(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

/// Returns a cluster with what concerns nobody.
fn populated(config: ClusterConfig, bad_object: bool) -> Cluster {
    let mut cluster = Cluster::new(config);
    let bystander = pod(BYSTANDER).labelled("app", "other").on("aside").build();
    cluster.create(bystander).expect("nothing refuses it");
    if bad_object {
        let mut misfit = pod(MISFIT).labelled("app", "other").build();
        // The contract has uids of at most 128 characters.
        misfit["metadata"]["uid"] = "u".repeat(129).into();
        cluster.restore(misfit).expect("nothing refuses it");
    }
    cluster
}
