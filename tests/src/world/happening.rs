//! The events of a world.

use agent_core::{
    api::{self, Call, CallId, Reply},
    lease::{self, Command},
    link::Disconnect,
    watch::{List, WatchEvent, WatchId},
};
use decree_api::v1;

use crate::{chaos::Fault, facts::Cause, workloads::Act};

/// An event at a time.
#[derive(Debug)]
pub(super) enum Happening {
    ServerStarts {
        server: usize,
    },
    AgentStarts,
    AgentWakes {
        life: u64,
    },
    LeaseAsked {
        life: u64,
        command: Command,
    },
    LeaseAnswered {
        life: u64,
        answer: Result<lease::Record, api::ApiError>,
    },
    Connecting {
        connection: u64,
    },
    ToServer {
        connection: u64,
        frame: v1::ReconcileRequest,
    },
    ServerSeesEnd {
        connection: u64,
        in_order: bool,
    },
    ToAgent {
        connection: u64,
        frame: v1::ReconcileResponse,
    },
    AgentSeesEnd {
        connection: u64,
        cause: Disconnect,
    },
    CallArrives {
        life: u64,
        call: Call,
        cause: Option<Cause>,
        answered: bool,
    },
    Reply {
        life: u64,
        id: CallId,
        result: Result<Reply, api::ApiError>,
    },
    CostAnswered {
        life: u64,
        id: u64,
        cost: Result<i32, String>,
    },
    ListArrives {
        life: u64,
        kind: api::Kind,
        id: WatchId,
    },
    Listed {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        list: Result<List, api::ApiError>,
    },
    WatchOpens {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        from: String,
    },
    WatchTells {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        event: WatchEvent,
    },
    WatchEnds {
        life: u64,
        kind: api::Kind,
        id: WatchId,
        error: Option<api::ApiError>,
    },
    NodesRead {
        life: u64,
    },
    Act {
        act: Act,
        tries: u32,
    },
    Fault(Fault),
}

/// The destination of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination {
    /// The server of a connection.
    Server(u64),
    /// The agent of a connection.
    Agent(u64),
    /// The process of a life.
    Process(u64),
    /// The API server, or no destination.
    Elsewhere,
}

impl Happening {
    pub(super) const fn destination(&self) -> Destination {
        match self {
            Self::ToServer { connection, .. } | Self::ServerSeesEnd { connection, .. } => {
                Destination::Server(*connection)
            }
            Self::ToAgent { connection, .. } | Self::AgentSeesEnd { connection, .. } => {
                Destination::Agent(*connection)
            }
            Self::Reply { life, .. }
            | Self::CostAnswered { life, .. }
            | Self::Listed { life, .. }
            | Self::WatchTells { life, .. }
            | Self::WatchEnds { life, .. }
            | Self::NodesRead { life }
            | Self::LeaseAnswered { life, .. } => Destination::Process(*life),
            Self::ServerStarts { .. }
            | Self::AgentStarts
            | Self::AgentWakes { .. }
            | Self::LeaseAsked { .. }
            | Self::Connecting { .. }
            | Self::CallArrives { .. }
            | Self::ListArrives { .. }
            | Self::WatchOpens { .. }
            | Self::Act { .. }
            | Self::Fault(_) => Destination::Elsewhere,
        }
    }
}
