//! What a sandbox is started with.

use std::net::SocketAddr;

use otlp::OtlpArgs;
use runtime::ListenAddr;

/// Where server and agent listen, what the embedded cluster draws from, and what the agent allows in it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) agent_admin: ListenAddr,
    pub(crate) seed: u64,
    /// Where traces of both go.
    pub(crate) otlp: OtlpArgs,
    pub(crate) budget: agent_core::budget::BudgetConfig,
    /// Whether the server can be killed, and started again.
    pub(crate) is_killable: bool,
}
