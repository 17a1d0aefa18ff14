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
use service::Fault;
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

impl KeyServer {
    pub(super) async fn fetch(&self) -> Result<Vec<u8>, Fault> {
        let late = || Fault::new(format!("no answer within {} s", PATIENCE.as_secs()));
        let answered = timeout(PATIENCE, self.request()).await;
        answered.unwrap_or_else(|_| Err(late()))
    }

    async fn request(&self) -> Result<Vec<u8>, Fault> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls()?)
            .https_only()
            .enable_http1()
            .build();
        let client: Client<_, Empty<Bytes>> =
            Client::builder(TokioExecutor::new()).build(connector);
        let answer = client.get(self.uri.clone()).await;
        let answer = answer.map_err(|error| Fault::because("no answer", error))?;
        let (head, body) = answer.into_parts();
        if head.status != http::StatusCode::OK {
            return Err(Fault::new(format!(
                "the answer is HTTP {}",
                head.status.as_u16()
            )));
        }
        let body = Limited::new(body, BYTES_MAX).collect().await;
        let cut_off = |error| Fault::because("the answer cannot be read to its end", error);
        Ok(body.map_err(cut_off)?.to_bytes().to_vec())
    }

    fn tls(&self) -> Result<ClientConfig, Fault> {
        let unreadable = |error| Fault::because("--token-keys-ca cannot be read", error);
        let pem = service::file::read(&self.ca, BYTES_MAX as u64).map_err(unreadable)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
        if roots.is_empty() {
            return Err(Fault::new("--token-keys-ca has no certificate in PEM"));
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Fault::because("TLS cannot be set up", error))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}
