//! A real cluster: its API server over connections for calls, one for Leases, and one for lists and watches.
//!
//! ```text
//! connect ─▶ transport ◀─ requests, codec ◀─ objects: from protobuf or JSON to the contract, and back
//!               ├─ reading: lists in pages, watches
//!               └─ calls, as many at a time as the limiter allows, while the fence lets them leave
//! ```
//! **Invariant:** a create takes effect within its `timeout` parameter or not at all.
//! **Invariant:** a write leaves within half a second of the check of its Lease, or not at all: its body is held back.
//! **Invariant:** a request is sent once; the agent finds out by name what became of an unanswered request.
//! **Invariant:** a name from elsewhere is one segment of a path.
//!
//! One `--namespace` narrows lists and watches to that namespace. With more of them, all namespaces are read and the agent leaves out the
//! others, as versions of several watches have no common order.

mod body;
mod clock;
mod cluster;
mod codec;
mod connect;
mod cost;
mod evictions;
mod fence;
mod follow;
mod lanes;
mod limiter;
mod lossy;
pub mod objects;
mod operator;
mod probe;
mod protobuf;
mod reading;
mod renewal;
mod requests;
mod resource;
mod transport;

pub use clock::Clock;
pub use cluster::{KubeCluster, KubeClusterConfig};
pub use connect::{ConnectError, CredentialSource, Target, catches_panic, in_pod, is_configured};
pub use evictions::{Eviction, Expected, Progress, RESPONDER, RESPONDER_ACCESSES};
pub use fence::Fence;
pub use follow::{Change, News};
pub use operator::{Access, OtherWrite};
pub use probe::{PROBE, Probe};
pub use reading::{EventReader, Events, Pages};
pub use resource::Resource;
