//! The events of processes and Leases.

use std::time::Duration;

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// With this number of shards; `None` for the whole cluster.
    ProcessStarts {
        shards: Option<u16>,
    },
    ProcessDies {
        life: u64,
    },
    /// An orderly stop.
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
}

/// The place of the Lease to which an answer belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeasePlace {
    pub(super) life: u64,
    pub(super) slot: Slot,
    /// The number of the Lease that sent the request.
    pub(super) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Base,
    Member,
    Shard(u16),
}
