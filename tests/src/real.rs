//! A real API server for tests: etcd, kube-apiserver with RBAC, and the built-in controllers as a peer.
//!
//! ```text
//! assets ─▶ program ─▶ etcd ◀─ kube-apiserver ◀─ kube-controller-manager
//!                                   ▲
//!                    api ── namespace: one for each test
//! ```
//! [`Attended`] adds a decree-server and a decree-agent that act everywhere in a separate cluster. Tests that start agents
//! themselves ([`Agent`], [`DecisionServer`]) use [`ApiServer::shared`], which has no controller.
//!
//! The flags are in `tests/cluster/run`, which people use too. A test binary has one [`ApiServer::shared`], whose tests use
//! separate namespaces. A test that restarts or stops something starts another [`ApiServer`].
//!
//! **Invariant:** no process and no folder outlives the test binary, even a killed one.
//!
//! **Invariant:** [`Api`] shares no code with the agent but the crates that both depend on, and it sends a request once.

mod agent;
mod api;
mod api_server;
mod assets;
mod attended;
mod audit_log;
mod controller_manager;
mod decision_server;
mod kept;
mod namespace;
mod nodes;
mod program;
mod proxy;
mod quota;
mod replicaset_controller;
mod scheduler;
mod service;
mod sightings;
mod up;

pub use self::{
    agent::Agent,
    api::{Api, Patch, Refusal},
    api_server::{ApiServer, Backup, Restored, User},
    attended::Attended,
    audit_log::AuditLog,
    controller_manager::ControllerManager,
    decision_server::DecisionServer,
    namespace::Namespace,
    nodes::{Judged, NodeCluster, Nodes, REFUSED, node_of},
    proxy::Proxy,
    replicaset_controller::ReplicaSetController,
    scheduler::Scheduler,
    service::Service,
    sightings::Sightings,
    up::Up,
};
pub use crate::running::PATIENCE;

use std::{
    process::{Command, Output},
    time::{Duration, Instant},
};

use tokio::time;

use crate::binaries;

/// The interval at which a test checks the condition of a wait.
pub const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Waits until `find` succeeds, and returns what it has found.
///
/// # Panics
/// With the latest error, if nothing is found within [`PATIENCE`].
pub async fn found<T>(mut find: impl AsyncFnMut() -> Result<T, String>) -> T {
    let until = Instant::now() + PATIENCE;
    let mut looks = time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        match find().await {
            Ok(found) => return found,
            Err(why) => assert!(Instant::now() < until, "{why}"),
        }
    }
}

/// Runs a command of the CLI to its end.
///
/// # Panics
/// If the CLI was not built.
pub fn decree(arguments: &[&str]) -> Output {
    let program = binaries::folder().join("decree");
    let output = Command::new(program).args(arguments).output();
    output.expect("it was built")
}
