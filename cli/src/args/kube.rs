//! The flags for the cluster of a kubeconfig, which a command reads without a server.

use std::path::PathBuf;

use agent_kube::{CredentialSource, KubeClusterConfig};
use clap::Args as Group;

/// The credentials for a cluster that is read without a server.
#[derive(Debug, Group)]
pub(crate) struct KubeArgs {
    /// Read the cluster of this kubeconfig, without a server
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Read the cluster of this context of the kubeconfig, without a server
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Read the cluster of the kubeconfig as this user, who is impersonated
    #[arg(long = "as", value_name = "USER")]
    pub(crate) impersonate: Option<String>,
}

// === impl KubeArgs ===

impl KubeArgs {
    /// Whether a flag asks for a cluster.
    pub(crate) const fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.impersonate.is_some()
    }

    pub(crate) fn config(&self) -> KubeClusterConfig {
        let config = KubeClusterConfig::of_person(self.kubeconfig.clone(), self.context.clone());
        KubeClusterConfig {
            source: CredentialSource {
                impersonate: self.impersonate.clone(),
                ..config.source
            },
            ..config
        }
    }
}
