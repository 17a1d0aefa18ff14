//! The clusters of an agent: the port of [`agent_core::cluster`], and the embedded cluster behind it.

pub mod fake;

pub use agent_core::cluster::Cluster;
pub use fake::FakeCluster;
