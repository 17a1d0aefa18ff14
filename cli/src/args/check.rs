//! The flags of `decree check`.

use std::path::PathBuf;

use clap::Args as Group;

use super::Output;
use crate::check::section::Section;
use crate::server::ServerArgs;

#[derive(Debug, Group)]
pub(crate) struct CheckArgs {
    /// Check only this; repeatable. In a container without credentials of the cluster: `--only server`
    #[arg(long, value_enum, value_name = "SECTION")]
    pub(crate) only: Vec<Section>,
    /// A kubeconfig; by default `KUBECONFIG`, `~/.kube/config`, or the service account of a pod
    #[arg(long, env = "DECREE_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than its current one
    #[arg(long, env = "DECREE_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The mode in which the agent will run: `shadow` and `dry-run` need fewer permissions
    #[arg(long, env = "DECREE_MODE", value_enum, default_value_t = decree_agent::Mode::Enforce)]
    pub(crate) mode: decree_agent::Mode,
    /// The namespace that the agent will manage; by default, all namespaces
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The resource that the agent will reconcile
    #[arg(
        long,
        env = "DECREE_RESOURCE",
        value_name = "PLURAL.VERSION.GROUP",
        default_value_t
    )]
    pub(crate) resource: agent_kube::Resource,
    /// The shard of the agent
    #[arg(long, env = "DECREE_SHARD", value_name = "I/N", default_value = "")]
    pub(crate) shard: decree_agent::ShardArg,
    /// The namespace of the agents' Lease; by default the namespace of this pod, or kube-system
    #[arg(long, env = "DECREE_LEASE_NAMESPACE", value_name = "NAME")]
    pub(crate) lease_namespace: Option<String>,
    /// The name of the agents' Lease; by default `decree-agent`, or `decree-agent-NAME` with `--shard NAME`
    #[arg(long, env = "DECREE_LEASE_NAME", value_name = "NAME")]
    pub(crate) lease_name: Option<String>,
    /// The value of this flag of the agent
    #[arg(long, env = "DECREE_BUILT_IN_CONTROLLER", value_enum)]
    pub(crate) built_in_controller: Option<decree_agent::BuiltIn>,
    /// The admin address of the agent, http://HOST:PORT, or `off`. A hold of its budget is a failure
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub(crate) agent: String,
    /// Output format; JSON is an array of objects with check, result, detail and hint
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl CheckArgs {
    pub(crate) fn asks_for(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    /// The names of the agent's Leases; the last one shows who acts.
    pub(crate) fn leases(&self) -> Vec<String> {
        let whole = self.shard.lease_name(self.lease_name.as_deref());
        let shard = self.shard.shard().map(|shard| shard.lease_name(&whole));
        std::iter::once(whole).chain(shard).collect()
    }
}
