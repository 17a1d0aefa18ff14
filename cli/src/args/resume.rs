//! The flags of `decree resume`.

use std::time::Duration;

use clap::Args as Group;

use super::{kube::KubeArgs, name::NameArg};

pub(super) const HELP: &str = "\
Without --kubeconfig, the file of KUBECONFIG or ~/.kube/config is used, or the
service account of a pod.

Exit codes:
  0  the annotation is set
  1  there is no such ReplicaSet, or the output cannot be written
  2  invalid command line, or no credentials of a cluster
  3  the cluster or the agent cannot be reached
  4  the cluster or the agent refused";

/// What is resumed: a ReplicaSet, or all.
#[derive(Debug, Group)]
#[group(required = true, multiple = true)]
pub(crate) struct ExtentArgs {
    /// The ReplicaSet
    #[arg(value_name = "NAME")]
    pub(crate) replica_set: Option<NameArg>,
    /// The namespace of the ReplicaSet
    #[arg(short, long, requires = "replica_set", value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The cluster, with all namespaces and ReplicaSets
    #[arg(long, conflicts_with_all = ["replica_set", "namespace"])]
    pub(crate) all: bool,
}

#[derive(Debug, Group)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) extent: ExtentArgs,
    #[command(flatten)]
    pub(crate) kube: KubeArgs,
    /// The resource that the agent reconciles
    #[arg(long, value_name = "PLURAL.VERSION.GROUP", default_value_t)]
    pub(crate) resource: agent_kube::Resource,
    /// The admin address of an agent with an embedded cluster, http://HOST:PORT, instead of a kubeconfig
    #[arg(long, value_name = "URL", conflicts_with_all = ["kubeconfig", "context", "impersonate", "resource"])]
    pub(crate) agent: Option<String>,
    /// The maximum time to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = service::config::duration)]
    pub(crate) timeout: Duration,
}
