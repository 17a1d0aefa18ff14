//! Tier: recorded answers of upstream, taken the whole way from Kubernetes' JSON through the contract to the core.

mod deletion_order;
mod executor;
mod selectors;
mod syncs;
