//! Why there are no clients, without the credentials.
//!
//! **Invariant:** an error of kube becomes text here alone, and that text quotes no content of a kubeconfig, no token and no output of a
//! plugin. kube's own texts do: a line near a mistake, the command of a plugin with its variables, all that it printed.

use std::error::Error;

use kube::{
    client::{AuthError, RustlsTlsError},
    config::{InClusterError, KubeconfigError, LoadDataError},
};
use thiserror::Error;

pub(super) const NO_HEADER: &str =
    "the token has characters that a header cannot have, such as a line end";

/// Why no client can be made.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be used.
    #[error("kubeconfig of {origin} cannot be used: {why}")]
    Kubeconfig {
        /// The source of its name.
        origin: String,
        /// What is wrong with it.
        why: String,
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
    #[error("the credentials do not make a client: {0}")]
    Client(String),
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

impl ConnectError {
    pub(super) fn kubeconfig(origin: String, error: &KubeconfigError) -> Self {
        let why = of_kubeconfig(error);
        Self::Kubeconfig { origin, why }
    }

    /// The error for a file without clusters and contexts.
    pub(super) fn empty(origin: String) -> Self {
        let why = "it is empty: it names no cluster and no context".to_owned();
        Self::Kubeconfig { origin, why }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the others are about requests, and a text that is not known may quote anything"
    )]
    pub(super) fn client(error: &kube::Error) -> Self {
        Self::Client(match error {
            kube::Error::Auth(error) => of_auth(error),
            kube::Error::RustlsTls(error) => of_tls(error),
            kube::Error::InferKubeconfig(error) => of_kubeconfig(error),
            _ => "users[].user: as or as-groups cannot be in a header".to_owned(),
        })
    }
}

/// Describes the failure of a request for which credentials could not be renewed; `None` if it failed otherwise.
pub(crate) fn of_renewal(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(of_auth(error));
        }
        cause = error.source();
    }
    None
}

fn of_kubeconfig(error: &KubeconfigError) -> String {
    use KubeconfigError as Is;
    match error {
        Is::CurrentContextNotSet
        | Is::KindMismatch
        | Is::ApiVersionMismatch
        | Is::LoadContext(_)
        | Is::LoadClusterOfContext(_)
        | Is::FindPath
        | Is::MissingClusterUrl => error.to_string(),
        Is::ReadConfig(error, file) => format!("{}: {error}", file.display()),
        Is::Parse(error) => {
            let place = error.location();
            let place = place.map(|at| format!(" in line {}, column {}", at.line(), at.column()));
            format!("its YAML has a mistake{}", place.unwrap_or_default())
        }
        Is::ParseClusterUrl(error) => format!("clusters[].cluster.server is not a URL: {error}"),
        Is::ParseProxyUrl(error) => format!("proxy-url or HTTPS_PROXY is not a URL: {error}"),
        Is::LoadCertificateAuthority(error) => of_data("certificate-authority", error),
        Is::LoadClientCertificate(error) => of_data("client-certificate", error),
        Is::LoadClientKey(error) => of_data("client-key", error),
        Is::ParseCertificates(_) => "certificate-authority is not PEM".to_owned(),
    }
}

fn of_data(field: &str, error: &LoadDataError) -> String {
    match error {
        LoadDataError::DecodeBase64(_) => format!("{field}-data is not Base64"),
        LoadDataError::ReadFile(error, file) => format!("{field} {}: {error}", file.display()),
        LoadDataError::NoBase64DataOrFile => format!("{field} is missing"),
    }
}

fn of_auth(error: &AuthError) -> String {
    use AuthError as Is;
    let text = match error {
        Is::InvalidBasicAuth(_) => {
            "the user or the password has characters that a header cannot have"
        }
        Is::InvalidBearerToken(_) => NO_HEADER,
        Is::ExecPluginFailed => "the output of the plugin for credentials has no status",
        Is::MalformedTokenExpirationDate(_) => "the time when the token expires is not in RFC 3339",
        Is::AuthExecParse(_) => "the output of the plugin for credentials is not an ExecCredential",
        Is::AuthExec(_) | Is::AuthExecSerialize(_) | Is::ParseTokenKey(_) => {
            "the auth-provider of the kubeconfig gives no token"
        }
        Is::AuthExecRun { out, .. } => {
            let status = out.status;
            return format!(
                "the plugin for credentials failed with {status}; run its command to see why"
            );
        }
        Is::ReadTokenFile(error, file) => return format!("token file {}: {error}", file.display()),
        Is::UnrefreshableTokenResponse
        | Is::MissingCommand
        | Is::ExecMissingClusterInfo
        | Is::AuthExecStart(_)
        | Is::NoValidNativeRootCA(_) => return error.to_string(),
    };
    text.to_owned()
}

fn of_tls(error: &RustlsTlsError) -> String {
    match error {
        RustlsTlsError::InvalidIdentityPem(_) => {
            "the client certificate or its key is not PEM".to_owned()
        }
        RustlsTlsError::MissingPrivateKey
        | RustlsTlsError::MissingCertificate
        | RustlsTlsError::InvalidPrivateKey(_)
        | RustlsTlsError::UnknownPrivateKeyFormat
        | RustlsTlsError::AddRootCertificate(_)
        | RustlsTlsError::NoValidNativeRootCA(_)
        | RustlsTlsError::InvalidServerName(_) => error.to_string(),
    }
}
