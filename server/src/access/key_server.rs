//! The keys of tokens over HTTPS.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Uri;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use thiserror::Error;
use tokio::time::timeout;
use tonic::codegen::Bytes;

/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum size of a response, and of the CA file, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// The server that publishes the keys. Requests are rare, so each one opens a new connection and reads the CA file again.
#[derive(Debug)]
pub(super) struct KeyServer {
    pub(super) uri: Uri,
    pub(super) ca: PathBuf,
}

/// Why there are no keys.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The CA file cannot be read.
    #[error("--token-keys-ca cannot be read")]
    Ca(#[source] std::io::Error),
    /// The CA file contains no certificate.
    #[error("--token-keys-ca has no certificate in PEM")]
    NoCa,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The server cannot be reached.
    #[error("no answer")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The response takes too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late,
    /// The response has another status than 200.
    #[error("the answer is HTTP {0}")]
    Status(u16),
    /// The response is incomplete or too long.
    #[error("the answer cannot be read to its end")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl KeyServer {
    pub(super) async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        timeout(PATIENCE, self.request())
            .await
            .unwrap_or(Err(FetchError::Late))
    }

    async fn request(&self) -> Result<Vec<u8>, FetchError> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls()?)
            .https_only()
            .enable_http1()
            .build();
        let client: Client<_, Empty<Bytes>> =
            Client::builder(TokioExecutor::new()).build(connector);
        let answer = client.get(self.uri.clone()).await;
        let (head, body) = answer.map_err(FetchError::Unreachable)?.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(FetchError::Status(head.status.as_u16()));
        }
        let body = Limited::new(body, BYTES_MAX).collect().await;
        Ok(body.map_err(FetchError::Body)?.to_bytes().to_vec())
    }

    fn tls(&self) -> Result<ClientConfig, FetchError> {
        let pem = service::file::read(&self.ca, BYTES_MAX as u64).map_err(FetchError::Ca)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
        if roots.is_empty() {
            return Err(FetchError::NoCa);
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(FetchError::Tls)?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}
