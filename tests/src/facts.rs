//! What happened in one step of a world, as far as a checker looks at it.

use std::time::Duration;

use agent_core::api::{Kind, Request};
use agent_fake::Object;
use decree::v1;
use server_session::Refusal;

/// One fact.
#[derive(Clone, Debug)]
pub enum Fact {
    /// A batch left the server, with the oracle's verdict on it.
    BatchSent {
        /// The connection.
        connection: u64,
        /// The batch.
        batch: Box<v1::Batch>,
        /// Why it should not have left.
        verdict: Result<(), String>,
    },
    /// The agent began a write.
    WriteBegan {
        /// The decision behind it.
        cause: Cause,
        /// The session that the agent was in.
        session: Option<String>,
        /// How many creates of the batch had begun before, and how many of them were answered.
        creates: (usize, usize),
        /// The epoch of the agent and the newest one of the Lease, where there is a Lease.
        epochs: Option<(i64, i64)>,
    },
    /// A pod was created by the agent.
    PodCreated {
        /// The decision behind it.
        cause: Cause,
        /// The pod.
        pod: Object,
    },
    /// A pod was asked to go by the agent.
    PodDeleted {
        /// The decision behind it.
        cause: Cause,
        /// The uid of the pod that was chosen.
        chosen: String,
        /// The pod that was hit, as it was just before.
        before: Object,
    },
    /// A server refused a session, or ended it.
    SessionEnded {
        /// The connection.
        connection: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A call of an agent was executed. Told only where servers are malicious.
    Called {
        /// The call.
        request: Box<Request>,
        /// The pod that it is about, as it was just before.
        before: Option<Box<Object>>,
        /// Whether it changed anything.
        took_effect: bool,
    },
    /// An agent opened a connection.
    Dialed {
        /// The life of the agent.
        life: u64,
    },
    /// An agent began a list.
    ListBegan {
        /// The life of the agent.
        life: u64,
        /// Of what.
        kind: Kind,
    },
    /// A frame of a server reached an agent.
    Heard {
        /// The life of the agent.
        life: u64,
    },
    /// Outcomes of these batches reached a server.
    Answered {
        /// The connection.
        connection: u64,
        /// The batch of each outcome.
        batches: Vec<u64>,
    },
    /// A list that reached a server is older than the first one of its session.
    OlderList {
        /// The connection.
        connection: u64,
    },
    /// Somebody is told that something is wrong.
    Told {
        /// What.
        what: Told,
        /// Who tells it.
        by: Teller,
    },
    /// The store was put back to a backup.
    PutBack {
        /// The version that it had reached.
        reached: u64,
        /// How many creates were under way.
        creates: usize,
        /// For how long an API server runs on that lists what was lost.
        behind: Duration,
        /// The agents that watched both kinds.
        watching: Vec<u64>,
    },
    /// A half broke the protocol.
    ProtocolBroken(String),
}

/// What people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// Pods of a ReplicaSet do not last.
    PodsDoNotLast,
    /// A ReplicaSet is quarantined.
    Quarantined,
    /// The versions of the cluster went back.
    WentBack,
    /// A ReplicaSet is held, as another controller is at work.
    OtherController,
    /// Another controller is at work, and nothing is held.
    OtherControllerWarned,
}

/// Who tells people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teller {
    /// The session of a connection.
    Session(u64),
    /// The agent of a life.
    Agent(u64),
}

// === impl Told ===

impl Told {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PodsDoNotLast => "Pods do not last",
            Self::Quarantined => "Quarantined",
            Self::WentBack => "Versions went back",
            Self::OtherController => "Held for another controller",
            Self::OtherControllerWarned => "Warned of another controller",
        }
    }
}

/// The decision behind a write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// The session.
    pub session: String,
    /// The batch.
    pub batch: u64,
    /// The operation in it.
    pub operation: usize,
    /// The uid of the ReplicaSet.
    pub set: String,
    /// The generation of the ReplicaSet that the decision rests on.
    pub generation: i64,
    /// Whether it is one of several creates.
    pub creates: bool,
}
