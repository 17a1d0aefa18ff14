//! Why there are no clients.

use kube::config::{InClusterError, KubeconfigError};
use thiserror::Error;

/// No client can be made.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig of {origin} cannot be used")]
    Kubeconfig {
        /// What named it.
        origin: String,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// There is no kubeconfig, and this is not a pod.
    #[error(
        "neither a kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config) nor the service account of a pod was found"
    )]
    Nowhere,
    /// What a pod is given cannot be used.
    #[error("the credentials of this pod cannot be used")]
    InCluster(#[source] Box<InClusterError>),
    /// The credentials do not make a client.
    #[error("the credentials do not make a client")]
    Client(#[source] Box<kube::Error>),
    /// The kubeconfig asks for what this agent cannot do.
    #[error("kubeconfig: {0}")]
    Unsupported(String),
    /// The file with the token cannot be read.
    #[error("token file {file}")]
    Token {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// What names a proxy names none.
    #[error("{name}: {why}")]
    Proxy {
        /// `proxy-url`, or a variable of the environment.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The namespace is not a name.
    #[error("namespace {0:?} is not a name")]
    Namespace(String),
}
