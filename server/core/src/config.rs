//! What decisions are made by.

use crate::{names::NameSeed, object::Span};

/// What decisions are made by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many creates or deletes one sync may decide; upstream: 500.
    pub burst_replicas: u32,
    /// How many creates slow start begins with; upstream: 1.
    pub slow_start_initial: u32,
    /// Whether deletes carry the version as a further precondition.
    pub delete_by_version: bool,
    /// How many operations may be in flight at once over all ReplicaSets; further batches wait their turn.
    pub operations_in_flight_max: usize,
    /// How many pods one batch may adopt and release, so that it fits a frame of the stream; the rest follows in the same sync.
    pub claims_max: usize,
    /// The longest delay between two tries of a ReplicaSet whose writes are refused; upstream: 1000 seconds.
    pub backoff_max: Span,
    /// Whether creates of a ReplicaSet back off whose pods do not last; upstream's do not.
    pub create_back_off: bool,
    /// Where new pods' names begin. Each session has its own, so that names are not used again.
    pub names: NameSeed,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            burst_replicas: 500,
            slow_start_initial: 1,
            delete_by_version: false,
            operations_in_flight_max: 10_000,
            claims_max: 5_000,
            backoff_max: Span::seconds(30),
            create_back_off: true,
            names: NameSeed::default(),
        }
    }
}
