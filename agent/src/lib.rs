//! The agent as a process: [`agent_core`]'s machine between a cluster and a server.
//!
//! ```text
//! cluster ── lists, watches ─▶ sources ─┐                 ┌─▶ uplink ── frames ─▶ server
//!    ▲                                  ├─▶ shell: Agent ─┤
//!    └──────── calls ◀──────────────────┘◀────────────────┘◀── frames ──
//! ```
//! One task owns the machine and the clock ([`run`]). It sleeps until there is input, passes all input to the machine, and does what the
//! machine commands. So changes and outcomes that arrive together travel together, and none waits for more. Any [`Cluster`] will do:
//! [`KubeCluster`](agent_kube::KubeCluster) is a real one, [`FakeCluster`] an embedded one.
//!
//! **Invariant:** no channel is unbounded, and no lock is held across an await.
//! **Invariant:** this crate decides nothing: the machine determines the calls, the connections and the frames.
//!
//! Deliberately outside: retries of calls. The server decides again, with names and preconditions that make repeats harmless.

mod admin;
mod args;
pub mod cluster;
mod kubernetes;
mod lease;
mod log;
mod metrics;
mod ranker;
mod reach;
mod recorder;
mod responder;
mod shell;
mod sources;
mod take_over;
mod uplink;

pub use admin::serve_admin;
pub use agent_core::cluster::Cluster;
pub use args::{
    AgentArgs, BudgetAction, BudgetArgs, BuiltIn, ClusterKind, FakeArgs, KubeArgs, Mode, NodeArgs,
    PermittedSource, PreferenceArgs, ShardArg,
};
pub use cluster::FakeCluster;
pub use kubernetes::{identity, run_on_kubernetes};
pub use metrics::Metrics;
pub use shell::{AgentError, ShellConfig, run};
