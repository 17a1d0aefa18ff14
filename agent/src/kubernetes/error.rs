//! Why an agent of a real cluster ends.

use agent_core::lease::LeaseTooShort;
use thiserror::Error;

use crate::{lease::LeaseLost, shell::RunError};

/// Why an agent of a real cluster ended other than on request.
#[derive(Debug, Error)]
pub enum KubernetesError {
    /// The Lease could expire before a create.
    #[error(transparent)]
    LeaseTooShort(#[from] LeaseTooShort),
    /// Another agent may lead.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// Shards require Leases.
    #[error("--shards needs --leader-elect: a shard is served by the agent that holds its lease")]
    ShardsWithoutLeases,
    /// The agent failed.
    #[error(transparent)]
    Run(#[from] RunError),
}
