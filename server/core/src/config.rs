//! The settings of a controller that affect its decisions.

use crate::{names::NameSeed, object::Span};

/// The settings of a controller that affect its decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The maximum number of creates or deletes of one sync; upstream: 500.
    pub burst_replicas: u32,
    /// The number of creates in the first round of slow start; upstream: 1.
    pub slow_start_initial: u32,
    /// Whether deletes have the resource version as a further precondition.
    pub delete_by_version: bool,
    /// The maximum number of operations in flight over all ReplicaSets. Further batches wait.
    pub operations_in_flight_max: usize,
    /// The maximum number of pods that one batch adopts and releases, so that it fits a frame. The same sync continues with the rest.
    pub claims_max: usize,
    /// The maximum delay between two attempts for a ReplicaSet whose writes are refused; upstream: 1000 seconds.
    pub backoff_max: Span,
    /// Whether creates back off for a ReplicaSet whose pods do not last. Upstream has no such back-off.
    pub create_back_off: bool,
    /// The seed of the names of new pods. Each session has its own, so that sessions do not reuse names.
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
