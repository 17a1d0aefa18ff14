//! The flags of `decree console`.

use clap::Args as Group;

use super::{AdminArgs, KubeArgs};

pub(super) const HELP: &str = "\
Exit codes:
  0  opened, or ended by Ctrl-C
  1  no server of Decree is ready
  2  invalid command line, no credentials of a cluster, or no kubectl
  3  the server or the cluster cannot be reached, or the forwarding ended
  4  the cluster refused";

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
