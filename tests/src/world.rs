//! A world: servers, agents and a cluster, stepped one happening at a time in virtual time.

use std::{collections::BTreeMap, time::Duration};

use agent_core::{
    api::{self, Call, CallId, Reply},
    lease::Command,
    link::Disconnect,
    watch::{Items, List, WatchEvent, WatchId},
};
use agent_fake::{Cluster, Config};
use decree::v1;
use jiff::{SignedDuration, Timestamp};

use self::{
    leadership::Leadership,
    link::{Route, Silence},
};
use crate::{
    actors::{AgentActor, Process, ServerActor},
    builders::pod,
    chaos::Chaos,
    encounters::Encounters,
    facts::{Cause, Fact},
    ledger::Ledger,
    mutants::Mutant,
    rng::Rng,
    schedule::Schedule,
    trace::Trace,
    workloads::{Act, BYSTANDER, MISFIT},
};

mod api_server;
mod faults;
mod leadership;
mod link;
mod mutations;
mod processes;
mod telling;
mod user;

/// A simulated world. Its owner steps it; checkers look at it between steps.
#[derive(Debug)]
pub struct World {
    /// The cluster.
    pub cluster: Cluster,
    /// The agents that live and act, by their lives: one, or several where one leads and others do not know it yet.
    pub agents: BTreeMap<u64, AgentActor>,
    /// The servers; those that live.
    pub servers: Vec<Option<ServerActor>>,
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
    mutant: Option<Mutant>,
    /// The first list of each kind, and the newest watch of which anything was told: what mutants keep in mind.
    first_lists: BTreeMap<api::Kind, Items>,
    newest_told: u64,
    rng: Rng,
    schedule: Schedule<Happening>,
    /// Which agent each connection is of, and which server it leads to.
    routes: BTreeMap<u64, Route>,
    /// The connections that have fallen silent.
    silent: BTreeMap<u64, Silence>,
    /// The agents whose processes are stopped, with what has reached them meanwhile.
    paused: BTreeMap<u64, Vec<Happening>>,
    leadership: Leadership,
    incidents: u32,
    lives: u64,
    connections: u64,
    watches: u64,
}

/// Something that happens at a time.
#[derive(Debug)]
enum Happening {
    ServerStarts {
        server: usize,
    },
    AgentStarts,
    AgentWakes {
        life: u64,
    },
    LeaseAsked {
        life: u64,
        command: Command,
    },
    LeaseAnswered {
        life: u64,
        answer: Result<serde_json::Value, api::ApiError>,
    },
    Connecting {
        connection: u64,
    },
    ToServer {
        connection: u64,
        frame: v1::ReconcileRequest,
    },
    ServerSeesEnd {
        connection: u64,
        in_order: bool,
    },
    ToAgent {
        connection: u64,
        frame: v1::ReconcileResponse,
    },
    AgentSeesEnd {
        connection: u64,
        cause: Disconnect,
    },
    CallArrives {
        life: u64,
        call: Call,
        cause: Option<Cause>,
        answered: bool,
    },
    Reply {
        life: u64,
        id: CallId,
        result: Result<Reply, api::ApiError>,
    },
    ListArrives {
        life: u64,
        kind: api::Kind,
        id: WatchId,
    },
    Listed {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        list: Result<List, api::ApiError>,
    },
    WatchOpens {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        from: String,
    },
    WatchTells {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        event: WatchEvent,
    },
    WatchEnds {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        error: Option<api::ApiError>,
    },
    Act {
        act: Act,
        tries: u32,
    },
}

// === impl World ===

impl World {
    /// Returns a world whose servers and agents are about to start.
    #[must_use]
    pub fn new(seed: u64, mut rng: Rng, chaos: Chaos, mutant: Option<Mutant>) -> Self {
        let config = Config {
            seed,
            ..crate::workloads::cluster()
        };
        let now = config.start;
        let mut schedule = Schedule::new(now);
        let soon = Duration::from_millis(50);
        for server in 0..chaos.servers {
            schedule.after(rng.delay(soon), Happening::ServerStarts { server });
        }
        for _ in 0..=chaos.standbys {
            schedule.after(rng.delay(soon), Happening::AgentStarts);
        }
        let mut cluster = Cluster::new(config);
        let bystander = pod(BYSTANDER).labelled("app", "other").on("aside").build();
        cluster.create(bystander).expect("nothing refuses it");
        if chaos.bad_object {
            let mut misfit = pod(MISFIT).labelled("app", "other").build();
            // The contract has uids of at most 128 characters.
            misfit["metadata"]["uid"] = "u".repeat(129).into();
            cluster.restore(misfit).expect("nothing refuses it");
        }
        Self {
            cluster,
            agents: BTreeMap::new(),
            servers: (0..chaos.servers).map(|_| None).collect(),
            ledger: Ledger::default(),
            facts: Vec::new(),
            incidents: chaos.incidents,
            chaos,
            encounters: Encounters::default(),
            routes: BTreeMap::new(),
            silent: BTreeMap::new(),
            paused: BTreeMap::new(),
            leadership: Leadership::default(),
            trace: Trace::default(),
            mutant,
            first_lists: BTreeMap::new(),
            newest_told: 0,
            rng,
            schedule,
            lives: 0,
            connections: 0,
            watches: 0,
        }
    }

    /// Returns the time.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.schedule.now()
    }

    /// Lets a user act after a while.
    pub fn plan(&mut self, after: Duration, act: Act) {
        self.schedule.after(after, Happening::Act { act, tries: 0 });
    }

    /// Ends all faults, but for links that have fallen silent: those are found by their silence.
    pub fn heal(&mut self) {
        self.chaos = self.chaos.healed();
        self.incidents = 0;
    }

    /// Returns whether a user's act is still to come.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        self.schedule
            .count(|it| matches!(it, Happening::Act { .. }))
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

    /// Lets the next thing happen, at `until` at the latest, and everything that follows at once. Returns whether it was before `until`.
    pub fn step(&mut self, until: Timestamp) -> bool {
        self.facts.clear();
        let at = self.next_at().filter(|at| *at <= until);
        let Some(at) = at else {
            self.schedule.arrive(until);
            self.cluster.advance(until);
            return false;
        };
        let cluster_first = self.cluster.next_due().is_some_and(|due| due <= at);
        self.schedule.arrive(at);
        self.cluster.advance(at);
        if !cluster_first && self.schedule.next_at() == Some(at) {
            self.happen();
        }
        self.wake_servers();
        self.wake_agents();
        self.inject_faults();
        self.settle();
        for life in self.wake_leases() {
            self.end_agent(life);
        }
        true
    }

    fn next_at(&self) -> Option<Timestamp> {
        let awake = |life: &u64| !self.paused.contains_key(life);
        let agents = self.agents.values().filter(|actor| awake(&actor.life));
        let agents = agents.filter_map(AgentActor::poll_timeout);
        let servers = self.servers.iter().flatten();
        let servers = servers.filter_map(ServerActor::poll_timeout);
        let next = [
            self.schedule.next_at(),
            self.cluster.next_due(),
            self.leadership.poll_timeout(awake),
        ];
        let next = next.into_iter().flatten().chain(agents).chain(servers);
        next.min().map(|at| at.max(self.now()))
    }

    fn happen(&mut self) {
        let Some(happening) = self.schedule.pop() else {
            return;
        };
        self.trace.note(self.schedule.now(), &happening);
        if self.is_lost(&happening) {
            return;
        }
        if let Some(happening) = self.withhold(happening) {
            self.deliver(happening);
        }
    }

    fn deliver(&mut self, happening: Happening) {
        match happening {
            Happening::ServerStarts { server } => self.start_server(server),
            Happening::AgentWakes { life } => self.wake_paused(life),
            Happening::LeaseAsked { life, command } => self.lease_asked(life, &command),
            Happening::LeaseAnswered { life, answer } => self.lease_answered(life, answer),
            Happening::AgentStarts => self.start_agent(),
            Happening::Connecting { connection } => self.connect(connection),
            Happening::ToServer { connection, frame } => self.hear_agent(connection, frame),
            Happening::ServerSeesEnd {
                connection,
                in_order,
            } => {
                let now = self.now();
                if let Some(server) = self.server_of(connection) {
                    server.handle_disconnected(now, connection, in_order);
                }
            }
            Happening::ToAgent { connection, frame } => self.hear_server(connection, frame),
            Happening::AgentSeesEnd { connection, cause } => self.agent_sees_end(connection, cause),
            Happening::CallArrives {
                life,
                call,
                cause,
                answered,
            } => {
                self.call_arrives(life, call, cause, answered);
            }
            Happening::Reply { .. }
            | Happening::Listed { .. }
            | Happening::WatchTells { .. }
            | Happening::WatchEnds { .. } => self.tell_agent(happening),
            Happening::ListArrives { life, kind, id } => self.list_arrives(life, kind, id),
            Happening::WatchOpens {
                life,
                kind,
                id,
                from,
            } => self.watch_opens(life, kind, id, &from),
            Happening::Act { act, tries } => self.act(act, tries),
        }
    }

    /// Lets a process act as the agent of an epoch.
    fn lead(&mut self, life: u64, epoch: i64, offset: SignedDuration) {
        let seed = self.rng.next_u64();
        let process = Process {
            now: self.now(),
            life,
            offset,
        };
        let actor = AgentActor::new(process, epoch, seed, self.mutant);
        self.agents.insert(life, actor);
    }

    /// Draws by how much the clock of a process differs from that of the cluster.
    fn draw_offset(&mut self) -> SignedDuration {
        let most = self.chaos.clock_skew;
        let offset = self.rng.delay(2 * most);
        SignedDuration::try_from(offset).unwrap_or_default()
            - SignedDuration::try_from(most).unwrap_or_default()
    }

    fn living(&mut self, life: u64) -> Option<&mut AgentActor> {
        self.agents.get_mut(&life)
    }

    /// Returns an agent with the time by its own clock.
    fn living_at(&mut self, life: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let now = self.now();
        let actor = self.agents.get_mut(&life)?;
        Some((actor.local(now), actor))
    }

    /// Returns the agent of a connection, unless it has left it, with the time by its own clock.
    fn agent_of(&mut self, connection: u64) -> Option<(Timestamp, &mut AgentActor)> {
        let life = self.routes.get(&connection)?.life;
        let found = self.living_at(life)?;
        Some(found).filter(|(_, actor)| actor.connection == Some(connection))
    }

    /// Returns the server that a connection leads to.
    fn server_of(&mut self, connection: u64) -> Option<&mut ServerActor> {
        let server = self.routes.get(&connection)?.server;
        self.servers[server].as_mut()
    }
}
