//! The ways to install Decree.

use crate::documents::{adapted, shown};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    AllInOne,
    AnyNode,
    HighAvailability,
    Tokens,
    Sharded,
    StaticPods,
    /// With Helm: the separate topology, for which there is `helm test`.
    Chart,
}

/// What is set of the chart.
pub(crate) const VALUES: &str = "--set topology=separate";

// === impl Road ===

impl Road {
    /// Returns the commands that install it.
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

    /// Returns the commands of the documents with a mark, with its own overlay and workloads in the place of those of `all-in-one`.
    pub(crate) fn own(self, mark: &str) -> String {
        adapted(&shown(mark), self.folder(), self.workloads())
    }

    /// Returns the commands that take away what is left when its workloads are deleted.
    pub(crate) fn uninstall(self) -> String {
        if self == Self::Chart {
            return "helm -n decree-system uninstall decree\nkubectl delete namespace decree-system"
                .to_owned();
        }
        format!("kubectl delete --ignore-not-found -k {}", self.folder())
    }

    /// Returns what has its pods made, as kubectl names it.
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

    /// Returns the namespace of its pods.
    pub(crate) fn namespace(self) -> &'static str {
        if self == Self::StaticPods {
            "kube-system"
        } else {
            "decree-system"
        }
    }

    /// Tells whether its workloads come from manifests, as applied by kubectl.
    pub(crate) fn has_manifests(self) -> bool {
        !matches!(self, Self::StaticPods | Self::Chart)
    }

    /// Tells whether one agent leads, by the Lease `decree-agent`.
    pub(crate) fn has_one_leader(self) -> bool {
        self != Self::Sharded
    }

    /// Tells whether the holder of a Lease decides: that of the cluster, or of one of its shards.
    pub(crate) fn leads_by(self, lease: &str) -> bool {
        match lease.strip_prefix("decree-agent") {
            Some("") => self.has_one_leader(),
            Some(rest) => rest
                .strip_prefix('-')
                .is_some_and(|shard| shard.parse::<u32>().is_ok()),
            None => false,
        }
    }

    /// Returns how many processes of Decree there are at least.
    pub(crate) fn processes(self) -> usize {
        match self {
            Self::AllInOne
            | Self::AnyNode
            | Self::HighAvailability
            | Self::Tokens
            | Self::StaticPods
            | Self::Chart => 4,
            Self::Sharded => 6,
        }
    }

    /// Tells whether its pods stay on nodes of the control plane.
    pub(crate) fn is_on_control_plane(self) -> bool {
        matches!(self, Self::AllInOne | Self::StaticPods)
    }

    /// Returns the mark of the commands that ask its servers.
    pub(crate) fn asks(self) -> &'static str {
        match self {
            Self::AllInOne | Self::AnyNode => "asks-the-leader",
            Self::StaticPods => "asks-a-static-pod",
            Self::HighAvailability | Self::Tokens | Self::Sharded | Self::Chart => {
                "asks-each-server"
            }
        }
    }

    /// Returns the folder of its manifests.
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

/// Returns the commands that make the Secrets of servers and agents, in a folder of their own.
fn certificates() -> String {
    let make = shown("makes-secrets");
    format!("folder=$(mktemp -d)\n(\ncd \"$folder\"\ndecree pki dev\n{make})\nrm -r \"$folder\"\n")
}
