//! A world: servers, agents and a cluster, stepped one event at a time in virtual time.
//!
//! Each file of the world depends only on earlier files:
//!
//! 1. the events: `happening`, `boundaries`
//! 2. the state: `leadership`, `caches`, `state`
//! 3. starts and ends: `processes`
//! 4. messages in flight and their effects: `mutations`, `api_server`, `watches`, `link`, `lease`, `user`, `restores`
//! 5. the outputs of the machines: `effects`
//! 6. the faults: `faults`
//! 7. the step

use jiff::Timestamp;

use self::happening::Happening;
pub use self::{
    boundaries::{Boundary, Crash, InFlight, Moment, PlannedCrash},
    effects::is_busy,
    restores::ILL_SET,
    state::{AskedPods, World},
    user::LEAVING_TAINT,
};
use crate::actors::{AgentActor, DecisionServer};

mod api_server;
mod boundaries;
mod caches;
mod effects;
mod faults;
mod happening;
mod leadership;
mod lease;
mod link;
mod mutations;
mod pages;
mod processes;
mod restores;
mod state;
mod user;
mod watches;

impl World {
    /// Executes the next event, at `until` at the latest, with its immediate effects. Returns whether the event was before
    /// `until`.
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
        self.ledger.creates_paid.follow(at, &self.cluster);
        for life in self.wake_leases() {
            self.end_agent(life);
        }
        true
    }

    /// Applies the immediate effects of another world's acts on the shared servers.
    pub fn follow(&mut self, now: Timestamp, killed: &[usize]) {
        self.facts.clear();
        self.schedule.arrive(now);
        self.cluster.advance(now);
        killed.iter().for_each(|server| self.lose_server(*server));
        self.settle();
    }

    /// Returns the servers that died in the last step.
    pub fn take_killed(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.killed)
    }

    /// Returns the time of the next event here, or on a server that this world has.
    pub fn next_at(&self) -> Option<Timestamp> {
        let awake = |life: &u64| !self.paused.contains_key(life);
        let agents = self.agents.values().filter(|actor| awake(&actor.life));
        let agents = agents.filter_map(AgentActor::poll_timeout);
        let servers = self.servers.iter().flatten();
        let servers = servers.filter_map(DecisionServer::poll_timeout);
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
        self.trace
            .note(self.schedule.now(), &format_args!("{happening:?}"));
        if self.is_lost(&happening) {
            return;
        }
        if let Some(happening) = self.withhold(happening) {
            self.deliver(happening);
        }
    }

    /// Resumes a stopped process: the process first takes everything that has reached it, and only then looks at its clock.
    fn wake_paused(&mut self, life: u64) {
        for happening in self.paused.remove(&life).into_iter().flatten() {
            self.deliver(happening);
        }
    }

    /// Delivers something that passes two boundaries: before its processing, and after.
    fn deliver(&mut self, happening: Happening) {
        let operation = happening.operation();
        if let Some((what, party)) = operation {
            self.pass(what, Moment::Received, party);
        }
        self.handle(happening);
        if let Some((what, party)) = operation {
            self.pass(what, Moment::Handled, party);
        }
    }

    fn handle(&mut self, happening: Happening) {
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
            | Happening::CostAnswered { .. }
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
            Happening::NodesRead { life } => self.nodes_read(life),
            Happening::Act { act, tries } => self.act(act, tries),
            Happening::Fault(fault) => self.suffer(fault),
        }
    }
}
