//! Why there are no clients, without the credentials.
//!
//! **Invariant:** an error of kube becomes text here alone, and that text quotes no content of a kubeconfig, no token and no output of a
//! plugin. kube's own texts do: a line near a mistake, the command of a plugin with its variables, all that it printed.

use std::{error::Error, fmt::Display};

use kube::{
    client::{AuthError, RustlsTlsError},
    config::{KubeconfigError, LoadDataError},
};
use thiserror::Error;

pub(super) const NO_HEADER: &str =
    "the token has characters that a header cannot have, such as a line end";
/// The error without a kubeconfig and outside a pod.
pub(super) const NOWHERE: &str = "neither a kubeconfig (--kubeconfig, KUBECONFIG, ~/.kube/config) nor the service account of a pod was found";
/// The error of a file without clusters and contexts.
pub(super) const EMPTY: &str = "it is empty: it names no cluster and no context";

/// Why no client can be made.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct ConnectError {
    text: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ConnectError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let (text, source) = (text.into(), None);
        Self { text, source }
    }

    pub(super) fn because(
        text: impl Into<String>,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        let (text, source) = (text.into(), Some(source.into()));
        Self { text, source }
    }

    /// A kubeconfig that cannot be used.
    pub(super) fn kubeconfig(origin: impl Display, why: &str) -> Self {
        Self::new(format!("kubeconfig of {origin} cannot be used: {why}"))
    }

    /// Credentials that do not make a client.
    pub(super) fn client(why: &str) -> Self {
        Self::new(format!("the credentials do not make a client: {why}"))
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the others are about requests, and a text that is not known may quote anything"
)]
pub(super) fn of_client(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(error) => of_auth(error),
        kube::Error::RustlsTls(error) => of_tls(error),
        kube::Error::InferKubeconfig(error) => of_kubeconfig(error),
        _ => "users[].user: as or as-groups cannot be in a header".to_owned(),
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

pub(super) fn of_kubeconfig(error: &KubeconfigError) -> String {
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
