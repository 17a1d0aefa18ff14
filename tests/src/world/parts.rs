//! Agents of processes that shard the cluster: each acts for a part of it, while its Leases last.

use std::time::Duration;

use agent_core::{
    agent::AgentConfig,
    api::{Call, Request},
    lease::CREATE_TIMEOUT_MIN,
};
use jiff::SignedDuration;

use super::{happening::Happening, state::World};
use crate::{
    actors::{AgentActor, Clock, Part, session_id},
    encounters::HELD_BACK,
    mutants::Mutant,
};

/// The interval of checks of a create that waits for the renewal of a Lease.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl World {
    /// Prevents agents from starting by themselves; the caller starts them.
    #[must_use]
    pub fn without_agents(mut self) -> Self {
        self.schedule
            .forget(|it| matches!(it, Happening::AgentStarts));
        self
    }

    /// Starts an agent for a part of the cluster. Returns its life.
    pub fn begin_part(&mut self, config: AgentConfig, part: Part) -> u64 {
        self.lives += 1;
        let clock = Clock::new(self.now(), SignedDuration::ZERO, 0);
        let actor = AgentActor::of_part(self.now(), self.lives, clock, config, part);
        self.agents.insert(self.lives, actor);
        self.lives
    }

    /// Ends an agent without a successor. Its messages in flight arrive, and answers to it are dropped.
    pub fn end_part(&mut self, life: u64) {
        self.paused.remove(&life);
        let actor = self.agents.remove(&life);
        actor.into_iter().for_each(|actor| self.orphan(&actor));
    }

    /// Returns the life of the agent that opened a session.
    #[must_use]
    pub fn life_of(&self, session: &str) -> Option<u64> {
        let mut routes = self.routes.iter();
        let route = routes.find(|(connection, _)| session_id(**connection) == session);
        route.map(|(_, route)| route.life)
    }

    /// Whether the Leases of an agent allow a call to leave. Limits a create to the remaining time of the Leases. A call that
    /// must wait for the renewal of a Lease is checked again later.
    pub(super) fn admits(&mut self, life: u64, call: &mut Call) -> bool {
        let now = self.now();
        let part = self.agents.get(&life).and_then(|it| it.part.as_ref());
        let Some(part) = part.filter(|_| !self.is_mutant(Mutant::IgnoreLeaseLoss)) else {
            return true;
        };
        match (part.create_time(now), &mut call.request) {
            (Some(time), Request::CreatePod(create)) if time >= CREATE_TIMEOUT_MIN => {
                create.timeout = create.timeout.min(time);
                true
            }
            (Some(_), Request::CreatePod(_)) => {
                let call = call.clone();
                let leaves = Happening::CallLeaves { life, call };
                self.schedule.after(LOOK_EVERY, leaves);
                false
            }
            (None, Request::CreatePod(_)) => {
                self.encounters.note(HELD_BACK);
                false
            }
            (time, _) => time.is_some(),
        }
    }
}
