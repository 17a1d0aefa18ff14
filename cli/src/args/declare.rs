//! The flags of `decree take-over` and `decree hand-back`.

use std::time::Duration;

use clap::Args as Group;

use super::kube::KubeArgs;

pub(super) const HELP: &str = "\
Without --kubeconfig, the file of KUBECONFIG or ~/.kube/config is used, or the
service account of a pod.

Exit codes:
  0  declared, and in effect
  1  declared, but not in effect in time, or an agent has found another
     controller on; or no agent has stood by
  2  invalid command line, or no credentials of a cluster
  3  the cluster cannot be reached
  4  the cluster refused";

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
