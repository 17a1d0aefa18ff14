//! What is left of stores that were.

use agent_core::watch::List;
use agent_fake::Cluster;

/// What a world keeps of stores that were.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) backup: Option<Box<Cluster>>,
    /// What the cache of an API server holds that runs on while its store is put back.
    pub(super) lost: Option<Box<Lost>>,
    /// The newest version that a store had which was put back.
    pub(super) newest: u64,
}

/// The lists of a store that is lost, and its version.
#[derive(Debug)]
pub(super) struct Lost {
    pub(super) lists: [List; 2],
    pub(super) version: u64,
}
