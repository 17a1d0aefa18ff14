//! The bounds of a search, and the ways to break its world on purpose.

use std::time::Duration;

use agent_core::creates::CreateLimits;

/// The time after its last renewal at which another agent takes the Lease: the default of the agent.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The maximum duration of a pause of an agent: long enough for another agent to take the Lease.
pub const PAUSE_MAX: Duration = Duration::from_secs(20);

/// The maximum virtual time until the world comes to rest.
pub const REST_WITHIN: Duration = Duration::from_secs(120);

/// Returns the maximum duration of creates, and of the delay of their effect after that: the defaults of the agent.
#[must_use]
pub fn create_limits() -> CreateLimits {
    CreateLimits::default()
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The number of servers. A connection leads to any of them.
    pub servers: usize,
    /// The number of agents that contend for the Lease.
    pub agents: usize,
    /// The desired and current replicas at the start of the search.
    pub replicas: i32,
    /// The acts of users, each once, at any moment and in any order.
    pub acts: Vec<Act>,
    /// The maximum number of deaths of each server, at any moment.
    pub server_crashes: u8,
    /// The maximum number of deaths of each agent, at any moment.
    pub agent_crashes: u8,
    /// The maximum number of broken connections, at any moment.
    pub broken_connections: u8,
    /// The maximum number of lost answers, at any moment. The call takes effect at any moment before its deadline, or never.
    pub lost_answers: u8,
    /// The maximum number of pauses of an agent, at any moment, each for up to [`PAUSE_MAX`].
    pub pauses: u8,
    /// Whether new pods become ready one by one, at any moment, or at once.
    pub readiness: bool,
    /// The maximum number of frames of an agent in flight; later changes merge. `None` for no bound.
    pub window: Option<u8>,
    /// Whether frames of agents reach servers at once. Frames of servers take any time in either case.
    pub prompt: bool,
}

/// An act of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sets the desired replicas.
    Scale(i32),
    /// Deletes the pod of this place by name.
    Kill(usize),
    /// Deletes the pod of this place by name and creates another of its name without an owner.
    Replace(usize),
}

/// One break of the world, to test that the search finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The API server ignores the uid that a deletion names.
    DropUidPrecondition,
    /// Agents leave no time for the creates of another agent to end.
    SkipBarrier,
    /// Agents retry an unanswered create under another name.
    RetryUnderAnotherName,
    /// Agents do not report outcomes.
    ForgetOutcomes,
    /// Agents take the Lease while another holds it.
    TakeLeaseAtOnce,
    /// Agents continue after the expiry of their Lease.
    IgnoreLeaseLoss,
    /// Watches do not report deletions.
    LoseDeletions,
    /// Servers keep a session that another has superseded.
    IgnoreSupersession,
    /// The API server executes creates up to a minute after their deadline.
    IgnoreTimeout,
}

// === impl Bounds ===

impl Bounds {
    /// Returns a world of these servers and agents without faults.
    #[must_use]
    pub const fn calm(servers: usize, agents: usize, replicas: i32, acts: Vec<Act>) -> Self {
        Self {
            servers,
            agents,
            replicas,
            acts,
            server_crashes: 0,
            agent_crashes: 0,
            broken_connections: 0,
            lost_answers: 0,
            pauses: 0,
            readiness: false,
            window: None,
            prompt: false,
        }
    }
}
