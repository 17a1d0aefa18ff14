//! The Lease requests of the processes of a world, and the effects of gaining or losing the Lease.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

use super::{happening::Happening, state::World};
use crate::{lease_api::refusal, mutants::Mutant};

impl World {
    /// Executes the Lease requests of the processes that are awake. Returns the processes that have lost the Lease, which end.
    pub(super) fn wake_leases(&mut self) -> Vec<u64> {
        let now = self.now();
        let awake = |life: &u64| !self.paused.contains_key(life);
        for (life, command) in self.leadership.poll_commands(now, awake) {
            let delay = self.rng.delay(self.chaos.call_max);
            let asked = Happening::LeaseAsked { life, command };
            self.schedule.after(delay, asked);
        }
        self.leadership.lost(now, awake)
    }

    pub(super) fn lease_asked(&mut self, life: u64, command: &Command) {
        let dead = !self.leadership.contends(life);
        if dead && self.rng.chance(self.chaos.lose_calls) {
            return;
        }
        let lost = self.rng.chance(self.chaos.lose_reply);
        if self.is_mutant(Mutant::TakeLeaseAtOnce) {
            self.leadership.vacate();
        }
        let answer = if self.rng.chance(self.chaos.refuse) {
            Err(refusal(503, "ServiceUnavailable"))
        } else {
            self.leadership.execute(command)
        };
        let answer = if lost {
            Err(ApiError::no_answer("context deadline exceeded"))
        } else {
            answer
        };
        let delay = self.rng.delay(self.chaos.call_max);
        let answered = Happening::LeaseAnswered { life, answer };
        self.schedule.after(delay, answered);
    }

    pub(super) fn lease_answered(&mut self, life: u64, answer: Result<Record, ApiError>) {
        let now = self.now();
        let lead = self.leadership.handle_answer(life, now, answer);
        if let (Some((epoch, clock)), false) = (lead, self.agents.contains_key(&life)) {
            self.encounters.note("Lease taken");
            self.lead(life, epoch, clock);
        }
    }
}
