//! The ways to install Decree.

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

/// Makes the Secrets of the documents, for the overlays whose servers have certificates.
const CERTIFICATES: &str = r#"
folder=$(mktemp -d)
decree pki dev --out "$folder/decree-pki"
for name in server agent; do
    kubectl -n decree-system create secret generic "decree-$name-tls" --from-file=tls.crt="$folder/decree-pki/$name.crt" \
        --from-file=tls.key="$folder/decree-pki/$name.key" --from-file=ca.crt="$folder/decree-pki/ca.crt"
done
rm -r "$folder"
"#;
const HELM_INSTALL: &str = "helm install decree deploy/helm/decree --namespace decree-system --create-namespace --set topology=separate";

// === impl Road ===

impl Road {
    /// Returns the commands that install it.
    pub(crate) fn install(self) -> String {
        if self == Self::Chart {
            // At first in shadow mode.
            return format!("{HELM_INSTALL} --set 'agent.args={{--mode=shadow}}'\n{CERTIFICATES}");
        }
        let certificates = if self.workloads().len() == 2 {
            CERTIFICATES
        } else {
            ""
        };
        format!("kubectl apply -k {}\n{certificates}", self.folder())
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
            Self::Chart => 2,
            Self::AllInOne
            | Self::AnyNode
            | Self::HighAvailability
            | Self::Tokens
            | Self::StaticPods => 4,
            Self::Sharded => 6,
        }
    }

    /// Tells whether agents come to any of several servers, of which each has the sessions that were begun with it.
    pub(crate) fn has_several_servers(self) -> bool {
        matches!(self, Self::HighAvailability | Self::Tokens | Self::Sharded)
    }

    /// Tells whether its pods stay on nodes of the control plane.
    pub(crate) fn is_on_control_plane(self) -> bool {
        matches!(self, Self::AllInOne | Self::StaticPods)
    }

    /// Returns the container in which `decree` asks the server.
    pub(crate) fn asks_in(self) -> &'static str {
        match self {
            Self::AllInOne | Self::AnyNode | Self::StaticPods => "server",
            Self::HighAvailability | Self::Tokens | Self::Sharded | Self::Chart => "agent",
        }
    }

    fn folder(self) -> &'static str {
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
