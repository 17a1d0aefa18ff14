//! The remains of lost stores.

use agent_core::watch::List;
use agent_fake::Cluster;

/// The state of lost stores.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) backup: Option<Box<Cluster>>,
    /// The cache of an API server that keeps running during a restore of its store.
    pub(super) lost: Option<Box<Lost>>,
    /// The highest version of a lost store.
    pub(super) newest: u64,
}

/// The lists of a lost store, and its version.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) lists: [List; 2],
    pub(super) version: u64,
}
