//! The settings of a controller that affect its decisions.

use std::{collections::BTreeMap, sync::Arc};

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
    /// The brake on creates while many pods have no node; `None` if pods need no node, or as upstream.
    pub brake: Option<Brake>,
    /// Whether the agent shows nodes: the controller decides nothing until it has shown all of them.
    pub nodes: bool,
    /// Whether the agent asks pods for their costs, where the ReplicaSet prefers that.
    pub asks_costs: bool,
    /// The costs of pods as if they had answered so, whatever the ReplicaSet prefers.
    pub costs: Costs,
    /// Whether another controller acts, and gets advice: nothing but deletion costs is decided.
    pub advises: bool,
    /// The seed of the names of new pods. Each session has its own, so that sessions do not reuse names.
    pub names: NameSeed,
}

/// A limit of creates, so that a person can notice a mistake in the number of desired pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// The number of pods of a ReplicaSet without a node from which on its creates are slow.
    pub pods: u32,
    /// The number of pods that are then created each second.
    pub per_second: u32,
}

/// The deletion costs of pods, by name.
pub type Costs = BTreeMap<Arc<str>, i32>;

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
            brake: None,
            nodes: false,
            asks_costs: false,
            costs: Costs::default(),
            advises: false,
            names: NameSeed::default(),
        }
    }
}
