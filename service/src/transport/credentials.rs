//! The TLS settings from the files: version 1.3, HTTP/2, no session resumption.

use std::{fmt::Display, sync::Arc};

use rustls::{
    ClientConfig, ServerConfig,
    client::{Resumption, WebPkiServerVerifier},
    crypto::{CryptoProvider, ring},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::TLS13,
};

use crate::{
    Fault,
    transport::{args::ClientAuth, files::Parsed},
};

/// HTTP/2, the only supported protocol.
const ALPN: &[u8] = b"h2";

#[derive(Debug)]
pub(crate) struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    /// `None` if clients are not asked for certificates.
    pub(crate) verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// The only provider of TLS, passed explicitly, so that nothing depends on which library installs its default first.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn unusable(why: impl Display) -> Fault {
    Fault::new(format!("--tls-ca and --tls-crl cannot be used: {why}"))
}

fn no_pair(error: rustls::Error) -> Fault {
    Fault::because("--tls-cert and --tls-key do not belong together", error)
}

impl ServerTls {
    pub(crate) fn build(parsed: &Parsed, client_auth: ClientAuth) -> Result<Self, Fault> {
        let Parsed {
            pair,
            roots,
            crls,
            expiries: _,
        } = parsed.clone();
        let mut verifier = None;
        if let Some(roots) = roots {
            let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
            if let Some(lists) = crls {
                builder = builder.with_crls(lists).enforce_revocation_expiration();
            }
            if client_auth == ClientAuth::Optional {
                builder = builder.allow_unauthenticated();
            }
            verifier = Some(builder.build().map_err(unusable)?);
        }
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(no_pair)?;
        let builder = match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let pair = pair.ok_or_else(|| unusable("no certificate"))?;
        let (chain, key) = &*pair;
        let mut config = builder
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(no_pair)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // No resumption: a certificate may have been revoked since the last handshake.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            verifier,
        })
    }
}

pub(crate) fn client_config(parsed: &Parsed) -> Result<ClientConfig, Fault> {
    let Parsed {
        pair,
        roots,
        crls,
        expiries: _,
    } = parsed.clone();
    let roots = roots.ok_or_else(|| unusable("no CA"))?;
    let mut verifier = WebPkiServerVerifier::builder_with_provider(roots, provider());
    if let Some(lists) = crls {
        verifier = verifier.with_crls(lists).enforce_revocation_expiration();
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(no_pair)?
        .with_webpki_verifier(verifier.build().map_err(unusable)?);
    let mut config = match pair.as_deref() {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(no_pair)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
