//! The processes of a world, and the connections between them: their start, their end, the queue of a stopped process, and
//! planned crashes.

use std::time::Duration;

use agent_core::link::Disconnect;

use super::{
    boundaries::{Boundary, Crash, InFlight, Moment, Party, PlannedCrash},
    happening::{Destination, Happening},
    state::World,
};
use crate::{
    actors::{
        AgentActor, CREATES, Clock, DecisionServer, Process, ServerActor,
        malicious::{Malice, MaliciousServer},
    },
    mutants::Mutant,
    schedule::Lane,
};

/// The time after its last renewal at which another agent takes a Lease: every create under the Lease has then taken effect or
/// never will.
const LEASE: Duration = CREATES.timeout.saturating_add(CREATES.margin);

impl World {
    pub(super) fn start_server(&mut self, server: usize) {
        let clock = self.draw_clock();
        let started = match self.malice {
            Some(Malice { attack, .. }) => {
                let actor = MaliciousServer::new(self.rng.next_u64(), attack);
                DecisionServer::Malicious(Box::new(actor))
            }
            None => {
                let max = self.chaos.operations_max;
                let actor = ServerActor::new(self.mutant, max, clock, self.now());
                DecisionServer::Honest(Box::new(actor))
            }
        };
        self.servers[server] = Some(started);
    }

    /// Makes a process the agent of an epoch.
    pub(super) fn lead(&mut self, life: u64, epoch: i64, clock: Clock) {
        let seed = self.rng.next_u64();
        let process = Process {
            now: self.now(),
            cluster: self.number,
            life,
            clock,
            budget: self.budget,
            asks: self.asked.is_some(),
            is_lenient: self.mutant.is_some_and(Mutant::needs_lenience)
                || self.malice.is_some_and(|it| it.is_obeyed),
            reads_nodes: self.reads_nodes,
            advises: self.advises,
        };
        let actor = AgentActor::new(process, epoch, seed, self.mutant);
        self.agents.insert(life, actor);
    }

    /// Starts the process of an agent. With a Lease, the process stands by until it holds the Lease.
    pub(super) fn start_agent(&mut self) {
        self.lives += 1;
        let (life, clock) = (self.lives, self.draw_clock());
        match self.chaos.standbys {
            0 => self.lead(life, i64::try_from(life).unwrap_or(i64::MAX), clock),
            _ => {
                let by_wall_clock = self.is_mutant(Mutant::MeasureLeaseByWallClock);
                self.leadership.contend(life, clock, by_wall_clock);
            }
        }
    }

    /// Kills the process of a server, which loses its state. Another process starts soon.
    pub fn kill_server(&mut self, server: usize) {
        if self.end_process(server) {
            let pause = self.rng.delay(Duration::from_millis(800));
            let starts = Happening::ServerStarts { server };
            self.schedule.after(pause, starts);
        }
    }

    /// Kills the process of a server as [`Self::kill_server`] does; another starts after `pause`.
    pub(super) fn kill_server_for(&mut self, server: usize, pause: Duration) {
        if self.end_process(server) {
            let starts = Happening::ServerStarts { server };
            self.schedule.after(pause, starts);
        }
    }

    /// Ends the process of a server, if there is one.
    fn end_process(&mut self, server: usize) -> bool {
        if self.servers[server].take().is_none() {
            return false;
        }
        self.trace.note(self.now(), &"the server dies");
        self.killed.push(server);
        self.lose_server(server);
        true
    }

    /// Breaks the connections to a dead server.
    pub(super) fn lose_server(&mut self, server: usize) {
        let actors = self.agents.values();
        let connections: Vec<_> = actors.filter_map(|actor| actor.connection).collect();
        for connection in connections {
            if self.routes[&connection].server == server {
                self.cut(connection);
            }
        }
    }

    /// Ends a drained server; another starts.
    pub(super) fn end_server(&mut self, server: usize) {
        self.servers[server] = None;
        let pause = self.rng.delay(Duration::from_millis(800));
        let starts = Happening::ServerStarts { server };
        self.schedule.after(pause, starts);
    }

    /// Ends the process of an agent without notice; another starts.
    pub(super) fn end_agent(&mut self, life: u64) {
        let contended = self.leadership.forget(life);
        let actor = self.agents.remove(&life);
        if actor.is_none() && !contended {
            return;
        }
        self.paused.remove(&life);
        self.trace.note(self.now(), &"the agent dies");
        actor.into_iter().for_each(|actor| self.orphan(&actor));
        let pause = self.rng.delay(Duration::from_millis(800));
        let waits = contended || self.mutant == Some(Mutant::SkipBarrier);
        let pause = if waits { pause } else { LEASE + pause };
        self.schedule.after(pause, Happening::AgentStarts);
    }

    /// Ends the watches and the connection of a dead process.
    pub(super) fn orphan(&mut self, actor: &AgentActor) {
        for open in actor.watches.iter().flatten() {
            self.cluster.close_watch(open.cluster);
        }
        if let Some(connection) = actor.connection {
            self.lose_frames_to_server(connection);
            let delay = self.rng.delay(Duration::from_secs(2));
            let end = Happening::ServerSeesEnd {
                connection,
                in_order: false,
            };
            self.schedule.on(Lane::ToServer(connection), delay, end);
        }
    }

    /// Draws whether the frames of an agent are lost with their connection.
    fn lose_frames_to_server(&mut self, connection: u64) {
        if self.rng.chance(self.chaos.lose_frames) {
            self.schedule.forget(
                |it| matches!(it, Happening::ToServer { connection: on, .. } if *on == connection),
            );
        }
    }

    /// Breaks the connection. Messages in flight arrive before the end is noticed, or never.
    pub(super) fn cut(&mut self, connection: u64) {
        self.trace.note(self.now(), &"the connection breaks");
        self.lose_frames_to_server(connection);
        if self.rng.chance(self.chaos.lose_frames) {
            self.schedule.forget(
                |it| matches!(it, Happening::ToAgent { connection: on, .. } if *on == connection),
            );
        }
        let delay = self.rng.delay(self.chaos.network_max);
        let end = Happening::ServerSeesEnd {
            connection,
            in_order: false,
        };
        self.schedule.on(Lane::ToServer(connection), delay, end);
        let cause = Disconnect::Lost("broken".to_owned());
        let delay = self.rng.delay(self.chaos.network_max);
        let end = Happening::AgentSeesEnd { connection, cause };
        self.schedule.on(Lane::ToAgent(connection), delay, end);
    }

    /// Keeps an event of a stopped process until it resumes; returns other events.
    pub(super) fn withhold(&mut self, happening: Happening) -> Option<Happening> {
        let life = self.addressee(&happening);
        match life.and_then(|life| self.paused.get_mut(&life)) {
            Some(withheld) => withheld.push(happening),
            None => return Some(happening),
        }
        None
    }

    /// The life of the agent whose process receives an event.
    fn addressee(&self, happening: &Happening) -> Option<u64> {
        match happening.destination() {
            Destination::Process(life) => Some(life),
            Destination::Agent(connection) => self.routes.get(&connection).map(|route| route.life),
            Destination::Server(_) | Destination::Elsewhere => None,
        }
    }

    /// Starts to record the passed boundaries.
    pub fn record_boundaries(&mut self) {
        self.boundaries.record();
    }

    /// Returns the passed boundaries, if recorded.
    pub fn boundaries(&self) -> &[Boundary] {
        self.boundaries.passed()
    }

    /// Plans a crash.
    pub const fn plan_crash(&mut self, planned: PlannedCrash) {
        let chance = match planned.in_flight {
            InFlight::Delivered => 0,
            InFlight::Lost => 1_000,
        };
        self.chaos.lose_frames = chance;
        self.chaos.lose_calls = chance;
        self.boundaries.plan(planned);
    }

    /// Returns the boundary of the planned crash, once it has happened.
    pub const fn crashed(&self) -> Option<Boundary> {
        self.boundaries.crashed()
    }

    /// Passes the boundary of an operation of an agent, and executes a crash planned there.
    pub(super) fn pass(&mut self, what: &'static str, moment: Moment, party: Party) {
        let Some(crash) = self.boundaries.pass(Boundary { what, moment }) else {
            return;
        };
        let life = match party {
            Party::Life(life) => Some(life),
            Party::Connection(connection) => self.routes.get(&connection).map(|route| route.life),
        };
        life.into_iter().for_each(|life| self.crash(crash, life));
    }

    fn crash(&mut self, crash: Crash, life: u64) {
        let actor = self.agents.get(&life);
        let connection = actor.and_then(|actor| actor.connection);
        let route = connection.and_then(|connection| self.routes.get(&connection));
        let server = route.map_or(0, |route| route.server);
        if matches!(crash, Crash::Server | Crash::Both) {
            self.kill_server(server);
        }
        if matches!(crash, Crash::Agent | Crash::Both) {
            self.end_agent(life);
        }
        if crash == Crash::Connection {
            connection.into_iter().for_each(|it| self.cut(it));
        }
    }
}
