//! The settings of a sandbox.

use std::net::SocketAddr;

use otlp::OtlpArgs;
use runtime::ListenAddr;

/// The addresses of server and agent, the seed of the embedded cluster, and the budget of the agent in it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) agent_admin: ListenAddr,
    pub(crate) seed: u64,
    /// The target of the traces of server and agent.
    pub(crate) otlp: OtlpArgs,
    pub(crate) budget: agent_core::budget::BudgetConfig,
    /// Whether the server can be killed and started again.
    pub(crate) is_killable: bool,
}
