//! The flags for the cluster of a kubeconfig.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use agent_kube::{CredentialSource, KubeClusterConfig};
use clap::Args as Group;

/// The credentials for a cluster.
#[derive(Debug, Group)]
pub(crate) struct KubeArgs {
    /// Use the cluster of this kubeconfig
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
