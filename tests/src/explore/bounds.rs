//! What a search covers, and in which way its world is broken on purpose.

use std::time::Duration;

use agent_core::creates::CreateLimits;

/// How long after its last renewal another agent takes the Lease: the default of the agent.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How long a stopped agent stays stopped at most: long enough for another to take the Lease.
pub const PAUSE_MAX: Duration = Duration::from_secs(20);

/// How long, in virtual time, the world may take to come to rest.
pub const REST_WITHIN: Duration = Duration::from_secs(120);

/// How long creates may take, and take effect after that: the defaults of the agent.
#[must_use]
pub fn create_limits() -> CreateLimits {
    CreateLimits::default()
}

/// A bounded world.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// How many servers there are. A connection leads to any of them.
    pub servers: usize,
    /// How many agents contend for the Lease.
    pub agents: usize,
    /// How many replicas the ReplicaSet wants, and has, where the search begins.
    pub replicas: i32,
    /// What users do, each once, at any moment and in any order.
    pub acts: Vec<Act>,
    /// How often each server dies, at any moment.
    pub server_crashes: u8,
    /// How often each agent dies, at any moment.
    pub agent_crashes: u8,
    /// How often a connection breaks, at any moment.
    pub broken_connections: u8,
    /// How often the answer to a call is lost, while the call takes effect, at any moment before its deadline or never.
    pub lost_answers: u8,
    /// How often an agent is stopped, at any moment, for up to [`PAUSE_MAX`], and goes on.
    pub pauses: u8,
    /// Whether new pods become ready one by one, at any moment, or are ready at once.
    pub readiness: bool,
    /// How many frames of an agent are on their way at most; what changes meanwhile merges. `None` for no bound.
    pub window: Option<u8>,
    /// Whether what agents send reaches servers at once. What servers send takes any time in either case.
    pub prompt: bool,
}

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Wants so many replicas.
    Scale(i32),
    /// Deletes the pod of this place by name.
    Kill(usize),
    /// Deletes the pod of this place by name and makes another of its name, which nobody owns.
    Replace(usize),
}

/// One break of the world, to see that the search sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The API server ignores the uid that a deletion names.
    DropUidPrecondition,
    /// Agents leave no time for the creates of another to end.
    SkipBarrier,
    /// A create that went unanswered is tried again under another name.
    RetryUnderAnotherName,
    /// Agents do not report what became of operations.
    ForgetOutcomes,
    /// Agents take the Lease while another holds it.
    TakeLeaseAtOnce,
    /// Agents go on when their Lease has run out.
    IgnoreLeaseLoss,
    /// Watches do not tell that a pod is gone.
    LoseDeletions,
    /// Servers keep a session that another has superseded.
    IgnoreSupersession,
    /// The API server takes creates up to a minute after their deadline.
    IgnoreTimeout,
}

// === impl Bounds ===

impl Bounds {
    /// Returns a world of so many servers and agents in which nothing goes wrong.
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
