//! The embedded cluster of an agent.

pub mod fake;

pub use fake::FakeCluster;
