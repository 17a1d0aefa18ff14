//! The ways to install Decree.

use super::documents::{adapted, shown};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    AllInOne,
    AnyNode,
    HighAvailability,
    Tokens,
    Sharded,
    StaticPods,
    /// With Helm: the separate topology, which has `helm test`.
    Chart,
}

/// The values for the chart.
pub(crate) const VALUES: &str = "--set topology=separate";

impl Installation {
    /// The commands that install it.
    pub(crate) fn install(self) -> String {
        let install = match self {
            Self::AllInOne | Self::AnyNode | Self::HighAvailability => self.own("installs"),
            Self::Tokens => shown("installs-tokens"),
            Self::Sharded => shown("installs-shards"),
            Self::StaticPods => shown("permits-static-pods"),
            // At first in shadow mode.
            Self::Chart => format!(
                "{} {VALUES} --set 'agent.args={{--mode=shadow}}'\n",
                shown("installs-with-helm").trim_end()
            ),
        };
        match self.workloads().len() {
            2 => install + &certificates(),
            _ => install,
        }
    }

    /// The commands of the documents with a mark, with its own overlay and workloads in place of those of `all-in-one`.
    pub(crate) fn own(self, mark: &str) -> String {
        adapted(&shown(mark), self.folder(), self.workloads())
    }

    /// The commands that remove the rest after the deletion of its workloads.
    pub(crate) fn uninstall(self) -> String {
        if self == Self::Chart {
            return shown("uninstalls-with-helm");
        }
        self.own("uninstalls")
    }

    /// Its workloads, as kubectl names them.
    pub(crate) fn workloads(self) -> &'static [&'static str] {
        match self {
            Self::AllInOne => &["daemonset/decree-agent"],
            Self::AnyNode => &["statefulset/decree-agent"],
            Self::StaticPods => &[],
            Self::HighAvailability | Self::Tokens | Self::Sharded | Self::Chart => {
                &["statefulset/decree-server", "statefulset/decree-agent"]
            }
        }
    }

    /// The namespace of its pods.
    pub(crate) fn namespace(self) -> &'static str {
        if self == Self::StaticPods {
            "kube-system"
        } else {
            "decree-system"
        }
    }

    /// Whether its workloads come from manifests, as applied by kubectl.
    pub(crate) fn has_manifests(self) -> bool {
        !matches!(self, Self::StaticPods | Self::Chart)
    }

    /// Whether one agent leads, by the Lease `decree-agent`.
    pub(crate) fn has_one_leader(self) -> bool {
        self != Self::Sharded
    }

    /// Whether the holder of a Lease decides: of the cluster's Lease, or of a shard's.
    pub(crate) fn leads_by(self, lease: &str) -> bool {
        match lease.strip_prefix("decree-agent") {
            Some("") => self.has_one_leader(),
            Some(rest) => rest
                .strip_prefix('-')
                .is_some_and(|shard| shard.parse::<u32>().is_ok()),
            None => false,
        }
    }

    /// The minimum number of processes of Decree.
    pub(crate) fn processes(self) -> usize {
        match self {
            Self::AllInOne
            | Self::AnyNode
            | Self::HighAvailability
            | Self::Tokens
            | Self::StaticPods
            | Self::Chart => 4,
            Self::Sharded => 10,
        }
    }

    /// The number of nodes beside those of the control plane: with shards, one more than agents, none of which share a node.
    pub(crate) const fn workers(self) -> usize {
        if matches!(self, Self::Sharded) { 9 } else { 3 }
    }

    /// Whether its pods stay on nodes of the control plane.
    pub(crate) fn is_on_control_plane(self) -> bool {
        matches!(self, Self::AllInOne | Self::StaticPods)
    }

    /// The mark of the commands that query its servers.
    pub(crate) fn asks(self) -> &'static str {
        match self {
            Self::AllInOne | Self::AnyNode => "asks-the-leader",
            Self::StaticPods => "asks-a-static-pod",
            Self::HighAvailability | Self::Tokens | Self::Sharded | Self::Chart => {
                "asks-each-server"
            }
        }
    }

    /// The mark of the commands that forward a port of a server.
    pub(crate) fn forwards(self) -> &'static str {
        match self {
            Self::AllInOne | Self::AnyNode => "forwards-the-leader",
            Self::StaticPods => "forwards-a-static-pod",
            Self::HighAvailability | Self::Tokens | Self::Sharded | Self::Chart => {
                "forwards-a-server"
            }
        }
    }

    /// The folder of its manifests.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::AllInOne => "deploy/kustomize/overlays/all-in-one",
            Self::AnyNode => "deploy/kustomize/overlays/any-node",
            Self::HighAvailability => "deploy/kustomize/overlays/high-availability",
            Self::Tokens => "deploy/kustomize/overlays/high-availability-tokens",
            Self::Sharded => "deploy/kustomize/overlays/sharded",
            Self::StaticPods => "deploy/static-pods",
            Self::Chart => "deploy/helm/decree",
        }
    }
}

/// The commands that make the Secrets of servers and agents, in a separate folder.
fn certificates() -> String {
    let make = shown("makes-certificates") + &shown("makes-secrets");
    format!("folder=$(mktemp -d)\n(\ncd \"$folder\"\n{make})\nrm -r \"$folder\"\n")
}
