//! Why there are no clients.

use kube::config::{InClusterError, KubeconfigError};
use thiserror::Error;

/// Why no client can be made.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig of {origin} cannot be used")]
    Kubeconfig {
        /// The source of its name.
        origin: String,
        /// What is wrong with it.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// The error without a kubeconfig and outside a pod.
    #[error(
        "neither a kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config) nor the service account of a pod was found"
    )]
    Nowhere,
    /// The service account of the pod cannot be used.
    #[error("the credentials of this pod cannot be used")]
    InCluster(#[source] Box<InClusterError>),
    /// The credentials do not make a client.
    #[error("the credentials do not make a client")]
    Client(#[source] Box<kube::Error>),
    /// The kubeconfig requires a feature that this agent lacks.
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
    /// The setting for a proxy names none.
    #[error("{name}: {why}")]
    Proxy {
        /// `proxy-url`, or an environment variable.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The namespace is not a name.
    #[error("namespace {0:?} is not a name")]
    Namespace(String),
}
