//! Processes that shard a cluster by Leases, in a [`World`](crate::world::World): one process may hold several Leases, and has an
//! agent for each shard that it holds.
//!
//! ```text
//! process: Lease of the number of shards, own Lease, Assignment ─▶ a Lease and an agent for each shard
//! agents, connections, servers, calls, lists and watches are those of the world
//! ```
//! Everything takes time, and a create takes effect as late as its timeout and the margin allow. After each step, a check ensures
//! that no two agents may write in a namespace. At each create, a check ensures that no other agent may write there.

mod checks;
mod happening;
mod leases;
mod processes;
mod state;
mod story;

use jiff::Timestamp;

use self::happening::Happening;
pub use self::{
    state::{Mutant, Shared},
    story::{growth, haste, loss, unrest},
};

// === impl Shared ===

impl Shared {
    /// Executes the next event, with its immediate effects. Returns whether the event was before `until`.
    ///
    /// # Errors
    /// The broken invariant.
    pub fn step(&mut self, until: Timestamp) -> Result<bool, String> {
        let world = self.world.next_at();
        let next = self.next_at().into_iter().chain(world).min();
        let Some(at) = next.filter(|at| *at <= until) else {
            self.schedule.arrive(until);
            self.world.step(until);
            return Ok(false);
        };
        self.schedule.arrive(at);
        self.lend_leases();
        if world.is_some_and(|world| world <= at) {
            self.world.step(at);
        } else {
            self.world.follow(at, &[]);
        }
        self.check()?;
        if self.schedule.next_at() == Some(at)
            && let Some(happening) = self.schedule.pop()
        {
            self.handle(happening);
        }
        self.wake();
        self.lend_leases();
        self.world.follow(at, &[]);
        self.check()?;
        Ok(true)
    }

    /// The time of the next event outside the world.
    fn next_at(&self) -> Option<Timestamp> {
        let awake = |life: &u64| !self.paused.contains_key(life);
        let processes = self.processes.iter().filter(|(life, _)| awake(life));
        let processes = processes.filter_map(|(_, it)| it.poll_timeout());
        let next = processes.chain(self.schedule.next_at()).min()?;
        Some(next.max(self.now()))
    }

    fn handle(&mut self, happening: Happening) {
        if let Some(life) = listener(&happening)
            && let Some(held) = self.paused.get_mut(&life)
        {
            return held.push(happening);
        }
        match happening {
            Happening::ProcessStarts { shards } => self.start_process(shards),
            Happening::ProcessDies { life } => self.end_process(life),
            Happening::ProcessStops { life } => self.stop_process(life),
            Happening::ProcessPauses { life, pause } => self.pause(life, pause),
            Happening::ProcessWakes { life } => self.resume(life),
            Happening::LeaseAsked { place, command } => self.lease_asked(place, &command),
            Happening::LeaseAnswered { place, answer } => self.lease_answered(place, answer),
            Happening::LeasesAsked { life } => self.leases_asked(life),
            Happening::LeasesListed { life, leases } => self.leases_listed(life, leases),
        }
    }

    /// Resumes a process: the process first takes everything that has arrived, and only then looks at its clock.
    fn resume(&mut self, life: u64) {
        for happening in self.paused.remove(&life).into_iter().flatten() {
            self.handle(happening);
        }
    }
}

/// The process that takes the event, later if the process is stopped.
const fn listener(happening: &Happening) -> Option<u64> {
    match happening {
        Happening::LeaseAnswered { place, .. } => Some(place.life),
        Happening::LeasesListed { life, .. } | Happening::ProcessStops { life } => Some(*life),
        Happening::ProcessStarts { .. }
        | Happening::ProcessDies { .. }
        | Happening::ProcessPauses { .. }
        | Happening::ProcessWakes { .. }
        | Happening::LeaseAsked { .. }
        | Happening::LeasesAsked { .. } => None,
    }
}
