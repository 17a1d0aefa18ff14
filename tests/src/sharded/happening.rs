//! What happens in a world.

use std::time::Duration;

use agent_core::{
    api::{ApiError, Call, CallId, Kind, Reply},
    lease::{Command, Record},
    link::Disconnect,
    watch::{List, WatchEvent, WatchId},
};
use decree::v1;

use super::state::{LeasePlace, World};

#[derive(Clone, Debug)]
pub(super) enum Happening {
    ServerStarts {
        server: usize,
    },
    ServerDies {
        server: usize,
    },
    ServerDrains {
        server: usize,
    },
    /// With so many shards; without for the whole cluster.
    ProcessStarts {
        shards: Option<u16>,
    },
    ProcessDies {
        life: u64,
    },
    /// In order.
    ProcessStops {
        life: u64,
    },
    ProcessPauses {
        life: u64,
        pause: Duration,
    },
    ProcessWakes {
        life: u64,
    },
    Scales {
        namespace: usize,
        replicas: i32,
    },
    LeaseAsked {
        place: LeasePlace,
        command: Command,
    },
    LeaseAnswered {
        place: LeasePlace,
        answer: Result<Record, ApiError>,
    },
    LeasesAsked {
        life: u64,
    },
    LeasesListed {
        life: u64,
        leases: Result<Vec<(String, Record)>, ApiError>,
    },
    Connecting {
        connection: u64,
    },
    ToServer {
        connection: u64,
        frame: v1::ReconcileRequest,
    },
    ToAgent {
        connection: u64,
        frame: v1::ReconcileResponse,
    },
    ServerSeesEnd {
        connection: u64,
        in_order: bool,
    },
    AgentSeesEnd {
        connection: u64,
        cause: Disconnect,
    },
    ListArrives {
        agent: u64,
        kind: Kind,
        id: WatchId,
    },
    Listed {
        agent: u64,
        kind: Kind,
        id: WatchId,
        list: Result<List, ApiError>,
    },
    WatchOpens {
        agent: u64,
        kind: Kind,
        id: WatchId,
        from: String,
    },
    WatchTells {
        agent: u64,
        kind: Kind,
        id: WatchId,
        event: WatchEvent,
    },
    WatchEnds {
        agent: u64,
        kind: Kind,
        id: WatchId,
        error: Option<ApiError>,
    },
    /// A call that waited for its Lease to be renewed.
    CallLeaves {
        agent: u64,
        call: Call,
    },
    CallArrives {
        agent: u64,
        call: Call,
    },
    Reply {
        agent: u64,
        id: CallId,
        result: Result<Reply, ApiError>,
    },
}

// === impl Happening ===

impl Happening {
    /// Returns the process that takes notice of it, and does so later if it is stopped.
    pub(super) fn heard_by(&self, world: &World) -> Option<u64> {
        let of_agent = |agent: &u64| world.agents.get(agent).map(|it| it.life);
        match self {
            Self::LeaseAnswered { place, .. } => Some(place.life),
            Self::LeasesListed { life, .. } | Self::ProcessStops { life } => Some(*life),
            Self::ToAgent { connection, .. } | Self::AgentSeesEnd { connection, .. } => {
                of_agent(&world.routes.get(connection)?.agent)
            }
            Self::Connecting { connection } => of_agent(&world.routes.get(connection)?.agent),
            Self::Listed { agent, .. }
            | Self::WatchTells { agent, .. }
            | Self::WatchEnds { agent, .. }
            | Self::CallLeaves { agent, .. }
            | Self::Reply { agent, .. } => of_agent(agent),
            Self::ServerStarts { .. }
            | Self::ServerDies { .. }
            | Self::ServerDrains { .. }
            | Self::ProcessStarts { .. }
            | Self::ProcessDies { .. }
            | Self::ProcessPauses { .. }
            | Self::ProcessWakes { .. }
            | Self::Scales { .. }
            | Self::LeaseAsked { .. }
            | Self::LeasesAsked { .. }
            | Self::ToServer { .. }
            | Self::ServerSeesEnd { .. }
            | Self::ListArrives { .. }
            | Self::WatchOpens { .. }
            | Self::CallArrives { .. } => None,
        }
    }
}
