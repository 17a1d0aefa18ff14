//! The flags for files and clusters, and of the commands that look at a cluster or change it.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    time::Duration,
};

use agent_kube::KubeClusterConfig;
use clap::Args as Group;

use super::{AdminArgs, name::NameArg};
use crate::{check::Section, format::PrintArgs, server::ServerArgs};

/// The credentials for a cluster.
#[derive(Debug, Group)]
pub(crate) struct KubeArgs {
    /// Use the cluster of this kubeconfig. Without it, that of KUBECONFIG or ~/.kube/config, or of the service account of a pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Use the cluster of this context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Use the cluster of the kubeconfig as this user, who is impersonated
    #[arg(long = "as", value_name = "USER")]
    pub(crate) impersonate: Option<String>,
}

impl KubeArgs {
    /// Whether a flag asks for a cluster.
    pub(crate) const fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.impersonate.is_some()
    }

    /// The same flags for kubectl.
    pub(crate) fn of_kubectl(&self) -> Vec<OsString> {
        let file = self.kubeconfig.as_ref().map(|it| it.as_os_str());
        let flags = [
            ("--kubeconfig", file),
            ("--context", self.context.as_ref().map(OsStr::new)),
            ("--as", self.impersonate.as_ref().map(OsStr::new)),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, value)| Some([flag.as_ref(), value?]));
        given.flatten().map(OsStr::to_owned).collect()
    }

    pub(crate) fn config(&self) -> KubeClusterConfig {
        let (file, context) = (self.kubeconfig.clone(), self.context.clone());
        let mut config = KubeClusterConfig::of_person(file, context);
        config.source.impersonate.clone_from(&self.impersonate);
        config
    }
}

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
    /// The mode in which the agent will run: all but `enforce` need fewer permissions
    #[arg(long, env = "DECREE_MODE", value_enum, default_value_t = decree_agent::Mode::Enforce)]
    pub(crate) mode: decree_agent::Mode,
    /// A namespace that the agent will manage; repeatable. By default, all namespaces
    #[arg(
        short,
        long = "namespace",
        id = "namespace",
        value_name = "NAMESPACE",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,
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
    /// The namespace of the agents' Lease; by default that of this pod, or the only one with a `decree-probe`, or kube-system
    #[arg(long, env = "DECREE_LEASE_NAMESPACE", value_name = "NAME")]
    pub(crate) lease_namespace: Option<String>,
    /// The name of the agents' Lease; by default `decree-agent`, or `decree-agent-NAME` with `--shard NAME`
    #[arg(long, env = "DECREE_LEASE_NAME", value_name = "NAME")]
    pub(crate) lease_name: Option<String>,
    /// Whether the agent will read nodes
    #[arg(long, env = "DECREE_NODES", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) nodes: bool,
    /// The value of this flag of the agent
    #[arg(long, env = "DECREE_BUILT_IN_CONTROLLER", value_enum)]
    pub(crate) built_in_controller: Option<decree_agent::BuiltIn>,
    /// The admin address of the agent, http://HOST:PORT, or `off`. A hold of its budget is a failure
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) print: PrintArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl CheckArgs {
    pub(crate) fn asks_for(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }

    /// The namespaces in which the agent acts; `None` stands for all.
    pub(crate) fn namespaces(&self) -> Vec<Option<&str>> {
        let named = self.namespaces.iter().filter(|it| !it.is_empty());
        let named: Vec<_> = named.map(|it| Some(it.as_str())).collect();
        if named.is_empty() { vec![None] } else { named }
    }

    /// The namespace that the agent lists and watches; `None` stands for all, which it also reads to act in several.
    pub(crate) fn read_namespace(&self) -> Option<&str> {
        match self.namespaces()[..] {
            [only] => only,
            _ => None,
        }
    }

    /// Whether the agent needs a Lease. In the other modes it may also run without leader election.
    pub(crate) fn must_elect(&self) -> bool {
        self.mode == decree_agent::Mode::Enforce || self.shard.shard().is_some()
    }

    /// The names of the agent's Leases; the last one shows who acts.
    pub(crate) fn leases(&self) -> Vec<String> {
        let whole = self.shard.lease_name(self.lease_name.as_deref());
        let shard = self.shard.shard().map(|shard| shard.lease_name(&whole));
        std::iter::once(whole).chain(shard).collect()
    }
}

#[derive(Debug, Group)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    /// The namespace of Decree; by default, all namespaces are searched
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Only print the address
    #[arg(long)]
    pub(crate) no_browser: bool,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
}

#[derive(Debug, Group)]
pub(crate) struct DeclareArgs {
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
    /// The namespace of the agents' Lease; by default the only namespace with a `decree-probe`
    #[arg(long, value_name = "NAME")]
    pub(crate) lease_namespace: Option<String>,
    /// The name of the agents' Lease
    #[arg(long, value_name = "NAME", default_value = "decree-agent")]
    pub(crate) lease_name: String,
    /// The maximum time to wait for the effect
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = service::config::duration)]
    pub(crate) timeout: Duration,
}

/// Where a command finds objects.
#[derive(Debug, Group)]
pub(crate) struct FileArgs {
    /// A file, a folder with all folders in it, or an archive (.tar or .tar.gz) of objects; `-` is standard input. Repeatable
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Group)]
pub(crate) struct ResumeArgs {
    /// The ReplicaSet
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) replica_set: Option<NameArg>,
    /// The namespace of the ReplicaSet, by default that of the kubeconfig's context; with `--all`, one that the agent serves
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// All ReplicaSets of an agent, and the cluster. Annotates any ReplicaSet; with shards, choose one of each shard by `--namespace`
    #[arg(long, conflicts_with = "replica_set")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
    /// The resource that the agent reconciles
    #[arg(long, value_name = "PLURAL.VERSION.GROUP", default_value_t)]
    pub(crate) resource: agent_kube::Resource,
    /// The maximum time to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = service::config::duration)]
    pub(crate) timeout: Duration,
}
