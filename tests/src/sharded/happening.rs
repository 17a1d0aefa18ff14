//! What happens in a world.

use std::time::Duration;

use agent_core::{
    api::{ApiError, Call, CallId, Kind, Reply},
    lease::{Command, Record},
    link::Disconnect,
    watch::{List, WatchEvent, WatchId},
};
use decree::v1;

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

/// Where an answer about a Lease belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeasePlace {
    pub(super) life: u64,
    pub(super) slot: Slot,
    /// That of the Lease that asked.
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Base,
    Member,
    Shard(u16),
}
