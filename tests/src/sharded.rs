//! A world in which processes share a cluster out by Leases: the real machines of both halves, in virtual time.
//!
//! ```text
//! process: Lease of the number of shards, own Lease, Assignment ─▶ a Lease and an agent for each shard
//!    agents ◀── connections ──▶ servers        agents ──▶ calls, lists, watches ──▶ one cluster
//! ```
//! Everything takes time, and a create takes effect as late as its timeout and the margin allow. After each step it is checked that no
//! two agents may write in a namespace, and at each create that none other than its agent may.

mod agents;
mod checks;
mod happening;
mod leases;
mod links;
mod processes;
mod reading;
mod state;
mod story;

use jiff::Timestamp;

use self::happening::Happening;
pub use self::{
    state::{Mutant, World},
    story::{growth, haste, loss, unrest},
};

// === impl World ===

impl World {
    /// Lets the next thing happen, and everything that follows at once. Returns whether it was before `until`.
    ///
    /// # Errors
    /// Says which invariant is broken.
    pub fn step(&mut self, until: Timestamp) -> Result<bool, String> {
        let Some(at) = self.next_at().filter(|at| *at <= until) else {
            self.schedule.arrive(until);
            self.cluster.advance(until);
            return Ok(false);
        };
        self.schedule.arrive(at);
        self.cluster.advance(at);
        if self.schedule.next_at() == Some(at)
            && let Some(happening) = self.schedule.pop()
        {
            self.handle(happening);
        }
        self.wake();
        self.check()?;
        Ok(true)
    }

    fn next_at(&self) -> Option<Timestamp> {
        let awake = |life: &u64| !self.paused.contains_key(life);
        let processes = self.processes.iter().filter(|(life, _)| awake(life));
        let processes = processes.filter_map(|(_, it)| it.poll_timeout());
        let agents = self.agents.values().filter(|it| awake(&it.life));
        let agents = agents.filter_map(|it| {
            let due = it.agent.poll_timeout()?;
            Some(due).filter(|due| *due > it.served)
        });
        let servers = self.servers.iter().flatten();
        let servers = servers.filter_map(|it| it.poll_timeout());
        let world = [self.schedule.next_at(), self.cluster.next_due()];
        let next = processes.chain(agents).chain(servers);
        let next = next.chain(world.into_iter().flatten()).min()?;
        Some(next.max(self.now()))
    }

    fn handle(&mut self, happening: Happening) {
        if let Some(life) = self.listener(&happening)
            && let Some(held) = self.paused.get_mut(&life)
        {
            return held.push(happening);
        }
        match happening {
            Happening::ServerStarts { server } => self.start_server(server),
            Happening::ServerDies { server } => self.kill_server(server),
            Happening::ServerDrains { server } => self.drain_server(server),
            Happening::ProcessStarts { shards } => self.start_process(shards),
            Happening::ProcessDies { life } => self.end_process(life),
            Happening::ProcessStops { life } => self.stop_process(life),
            Happening::ProcessPauses { life, pause } => self.pause(life, pause),
            Happening::ProcessWakes { life } => self.resume(life),
            Happening::Scales {
                namespace,
                replicas,
            } => self.scale(namespace, replicas),
            Happening::LeaseAsked { place, command } => self.lease_asked(place, &command),
            Happening::LeaseAnswered { place, answer } => self.lease_answered(place, answer),
            Happening::LeasesAsked { life } => self.leases_asked(life),
            Happening::LeasesListed { life, leases } => self.leases_listed(life, leases),
            Happening::Connecting { connection } => self.connect(connection),
            Happening::ToServer { connection, frame } => self.hear_agent(connection, frame),
            Happening::ToAgent { connection, frame } => self.hear_server(connection, frame),
            Happening::ServerSeesEnd {
                connection,
                in_order,
            } => self.server_sees_end(connection, in_order),
            Happening::AgentSeesEnd { connection, cause } => self.agent_sees_end(connection, cause),
            Happening::ListArrives { agent, kind, id } => self.list_arrives(agent, kind, id),
            Happening::Listed {
                agent,
                kind,
                id,
                list,
            } => self.listed(agent, kind, id, list),
            Happening::WatchOpens {
                agent,
                kind,
                id,
                from,
            } => self.watch_opens(agent, kind, id, &from),
            Happening::WatchTells {
                agent,
                kind,
                id,
                event,
            } => self.watch_tells(agent, kind, id, event),
            Happening::WatchEnds {
                agent,
                kind,
                id,
                error,
            } => self.watch_ends(agent, kind, id, error.as_ref()),
            Happening::CallLeaves { agent, call } => self.send_call(agent, call),
            Happening::CallArrives { agent, call } => self.call_arrives(agent, call),
            Happening::Reply { agent, id, result } => self.reply(agent, id, result),
        }
    }

    /// Returns the process that takes notice of it, and does so later if it is stopped.
    fn listener(&self, happening: &Happening) -> Option<u64> {
        let of_agent = |agent: &u64| self.agents.get(agent).map(|it| it.life);
        match happening {
            Happening::LeaseAnswered { place, .. } => Some(place.life),
            Happening::LeasesListed { life, .. } | Happening::ProcessStops { life } => Some(*life),
            Happening::ToAgent { connection, .. } | Happening::AgentSeesEnd { connection, .. } => {
                of_agent(&self.routes.get(connection)?.agent)
            }
            Happening::Connecting { connection } => of_agent(&self.routes.get(connection)?.agent),
            Happening::Listed { agent, .. }
            | Happening::WatchTells { agent, .. }
            | Happening::WatchEnds { agent, .. }
            | Happening::CallLeaves { agent, .. }
            | Happening::Reply { agent, .. } => of_agent(agent),
            Happening::ServerStarts { .. }
            | Happening::ServerDies { .. }
            | Happening::ServerDrains { .. }
            | Happening::ProcessStarts { .. }
            | Happening::ProcessDies { .. }
            | Happening::ProcessPauses { .. }
            | Happening::ProcessWakes { .. }
            | Happening::Scales { .. }
            | Happening::LeaseAsked { .. }
            | Happening::LeasesAsked { .. }
            | Happening::ToServer { .. }
            | Happening::ServerSeesEnd { .. }
            | Happening::ListArrives { .. }
            | Happening::WatchOpens { .. }
            | Happening::CallArrives { .. } => None,
        }
    }

    /// Lets a process go on: first it hears everything that has reached it, and only then it looks at its clock.
    fn resume(&mut self, life: u64) {
        for happening in self.paused.remove(&life).into_iter().flatten() {
            self.handle(happening);
        }
        // Nothing says which of its tasks runs first.
        if self.rng.chance(500) {
            self.drive_agents();
        }
    }
}
