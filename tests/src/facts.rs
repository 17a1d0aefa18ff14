//! The facts of one step of a world, for the checkers.

use std::time::Duration;

use agent_core::api::{Kind, Request};
use agent_fake::Object;
use decree_api::v1;
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
        /// Why the batch should not have left.
        verdict: Result<(), String>,
    },
    /// The agent began a write.
    WriteBegan {
        /// The decision for the write.
        cause: Cause,
        /// The session that the agent was in.
        session: Option<String>,
        /// How many creates of the batch had begun and how many were answered before this write.
        creates: (usize, usize),
        /// The epoch of the agent and the newest one of the Lease, where there is a Lease.
        epochs: Option<(i64, i64)>,
    },
    /// The agent created a pod.
    PodCreated {
        /// The decision for the pod.
        cause: Cause,
        /// The pod.
        pod: Object,
    },
    /// The agent requested the deletion of a pod.
    PodDeleted {
        /// The decision for the deletion.
        cause: Cause,
        /// The uid of the victim.
        chosen: String,
        /// The deleted pod, just before its deletion.
        before: Object,
    },
    /// A server refused a session, or ended it.
    SessionEnded {
        /// The connection.
        connection: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A call of an agent was executed. Only with malicious servers.
    Called {
        /// The call.
        request: Box<Request>,
        /// The pod of the call, just before it.
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
        /// The kind.
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
    /// Somebody is told of a fault.
    Told {
        /// The fault.
        what: Told,
        /// The component that reports it.
        by: Teller,
    },
    /// The store was restored from a backup.
    PutBack {
        /// The highest version before the restore.
        reached: u64,
        /// The number of creates in flight.
        creates: usize,
        /// The time for which an API server keeps running and lists the lost state.
        behind: Duration,
        /// The agents that watched both kinds.
        watching: Vec<u64>,
    },
    /// A half broke the protocol.
    ProtocolBroken(String),
}

/// A fault that people are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// Pods of a ReplicaSet do not last.
    PodsDoNotLast,
    /// A ReplicaSet is quarantined.
    Quarantined,
    /// The versions of the cluster went back.
    WentBack,
    /// A ReplicaSet is held, because another controller acts on it.
    OtherController,
}

/// The component that tells people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teller {
    /// The session of a connection.
    Session(u64),
    /// The agent of a life.
    Agent(u64),
}

impl Told {
    /// Returns the word for this fault.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PodsDoNotLast => "Pods do not last",
            Self::Quarantined => "Quarantined",
            Self::WentBack => "Versions went back",
            Self::OtherController => "Held for another controller",
        }
    }
}

/// The decision for a write.
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
    /// The generation of the ReplicaSet in the decision.
    pub generation: i64,
    /// Whether the operation is one of several creates.
    pub creates: bool,
}
