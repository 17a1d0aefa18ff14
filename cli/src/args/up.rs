//! The flags of the commands that run everything in one process, and of the acts on such a process.

use std::{net::SocketAddr, time::Duration};

use clap::{Args as Group, Subcommand};
use decree_agent::{ClusterKind, Mode};
use service::ListenAddr;

use super::{
    kube::{FileArgs, KubeArgs},
    name::NameArg,
};
use crate::exit::{Exit, Failure};

#[derive(Debug, Group)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) input: FileArgs,
    /// The kind of cluster; by default `kubernetes` with a kubeconfig or a context, and `fake` without
    #[arg(long, value_enum)]
    pub(crate) cluster: Option<ClusterKind>,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
    /// A namespace of the real cluster that the agent manages; repeatable. By default, all namespaces
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// Let the agent of a real cluster read nodes, for the preferences that depend on them, such as `surge-on-eviction`
    #[arg(long)]
    pub(crate) nodes: bool,
    /// The mode of the agent; by default `enforce` on the embedded cluster, and `shadow`, which writes nothing, on a real one
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Address for gRPC; port 0 picks a free port
    #[arg(
        long,
        env = "DECREE_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:50051",
        value_parser = service::socket_address
    )]
    pub(crate) listen: SocketAddr,
    /// Address for /livez, /readyz, /metrics and `decree demo`; port 0 picks a free port
    #[arg(
        long,
        env = "DECREE_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8080",
        value_parser = service::socket_address
    )]
    pub(crate) admin: SocketAddr,
    /// Address for /livez, /readyz and /metrics of the agent, or `off`. With a trailing `?`, the agent uses a free port if this port is
    /// taken
    #[arg(
        long,
        env = "DECREE_AGENT_ADMIN",
        value_name = "ADDR",
        default_value = "127.0.0.1:8081?"
    )]
    pub(crate) agent_admin: ListenAddr,
    /// Log the server and the agent to standard error: a level such as `info`, or filters by target
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<service::Filter>,
}

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    pub(crate) command: Option<DemoCommand>,
    /// The maximum duration of each step
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = service::config::duration)]
    pub(crate) deadline: Duration,
    /// Do not pause between steps on a terminal
    #[arg(long)]
    pub(crate) fast: bool,
    /// Log the server and the agent to standard error: a level such as `info`, or filters by target
    #[arg(long, value_name = "FILTER")]
    pub(crate) log_level: Option<service::Filter>,
}

impl UpArgs {
    /// Whether the cluster is a real one. A real cluster has a different default mode, so this refuses flags that contradict each
    /// other.
    pub(crate) fn is_real(&self) -> Result<bool, Failure> {
        let named = self.kube.is_given();
        let is_real = self
            .cluster
            .map_or(named, |kind| kind == ClusterKind::Kubernetes);
        let contradiction = match is_real {
            true if !self.input.files.is_empty() => "--filename fills the embedded cluster",
            false if named => "--kubeconfig, --context and --as name a real cluster",
            false if !self.namespaces.is_empty() => "--namespace is for a real cluster",
            true | false => return Ok(is_real),
        };
        let cluster = if is_real { "real" } else { "embedded" };
        let cause = format!("{contradiction}, but the {cluster} one is asked for");
        Err(Failure::new(Exit::Usage, cause).hint(
            "use --cluster kubernetes for a real cluster, or --cluster fake for the embedded one",
        ))
    }
}

/// An act on a running embedded cluster.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Scale a ReplicaSet of the running embedded cluster
    Scale {
        /// The ReplicaSet: NAME, rs/NAME or NAMESPACE/NAME
        #[arg(value_name = "NAME")]
        replica_set: NameArg,
        /// The number of desired pods
        #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(0..))]
        replicas: i32,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Resume what the agent's budget holds of a ReplicaSet of the running embedded cluster
    Resume {
        /// The ReplicaSet: NAME, rs/NAME or NAMESPACE/NAME
        #[arg(value_name = "NAME")]
        replica_set: NameArg,
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Stop a node of the running embedded cluster
    Fail {
        /// The node
        node: String,
        #[command(flatten)]
        server: AdminArgs,
    },
    /// Cordon a node of the running embedded cluster, and evict the pods that have ready replacements
    Drain {
        /// The node
        node: String,
        #[command(flatten)]
        server: AdminArgs,
    },
    /// Start a stopped node of the running embedded cluster, or uncordon a drained one
    Restore {
        /// The node
        node: String,
        #[command(flatten)]
        server: AdminArgs,
    },
    /// Limit the number of pods in a namespace of the running embedded cluster
    Quota {
        /// The maximum number of pods
        #[arg(value_name = "NUMBER")]
        pods: u32,
        #[command(flatten)]
        place: PlaceArgs,
    },
}

/// A namespace of the embedded cluster.
#[derive(Clone, Debug, Group)]
pub(crate) struct PlaceArgs {
    /// The namespace, also of a name without one; by default, `default`
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) server: AdminArgs,
}

/// The admin address of a server of this machine.
const ADMIN: &str = "127.0.0.1:8080";

/// A server of this machine, such as that of the embedded cluster.
#[derive(Clone, Debug, Group)]
pub(crate) struct AdminArgs {
    /// The admin address of the running `decree up`, or of another server
    #[arg(
        long,
        env = "DECREE_ADMIN",
        value_name = "ADDR",
        default_value = ADMIN,
        value_parser = service::socket_address
    )]
    pub(crate) admin: SocketAddr,
}

impl AdminArgs {
    pub(crate) fn is_default(&self) -> bool {
        ADMIN.parse() == Ok(self.admin)
    }
}
