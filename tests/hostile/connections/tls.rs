//! TLS below the steps of a connection: its handshake, and its ends.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    AlertDescription, ClientConfig, Error as TlsError, RootCertStore, crypto::ring, version::TLS13,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::guard::Guard;

/// The handshake of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    /// The certificate of the client, if any.
    certificate: Option<String>,
    /// The requested protocols.
    #[serde(default = "http2")]
    alpn: Vec<String>,
    /// The number of bytes after which the client falls silent.
    pub(super) cut: Option<usize>,
    /// The number of key updates after the handshake.
    #[serde(default)]
    pub(super) key_updates: u64,
}

/// A connection that passes this number of bytes, and then none.
pub(super) struct Cut {
    pub(super) stream: TcpStream,
    pub(super) left: usize,
}

fn http2() -> Vec<String> {
    vec!["h2".to_owned()]
}

impl Tls {
    pub(super) fn config(&self, guard: &Guard) -> ClientConfig {
        let (pair, ca) = guard.pems(self.certificate.as_deref().unwrap_or("none"));
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca.as_bytes()).flatten());
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_protocol_versions(&[&TLS13])
            .expect("it is known");
        let builder = builder.with_root_certificates(roots);
        let mut config = match self.certificate {
            None => builder.with_no_client_auth(),
            Some(_) => {
                let chain = CertificateDer::pem_slice_iter(pair.cert.as_bytes()).flatten();
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key");
                let certified = builder.with_client_auth_cert(chain.collect(), key);
                certified.expect("they belong together")
            }
        };
        config.alpn_protocols = self.alpn.iter().map(|it| it.clone().into_bytes()).collect();
        config
    }
}

impl AsyncRead for Cut {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl AsyncWrite for Cut {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let now = from.len().min(self.left);
        if now == 0 && !from.is_empty() {
            // As if it had been sent: a client that is cut off does not notice.
            return Poll::Ready(Ok(from.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, &from[..now]);
        if let Poll::Ready(Ok(written)) = written {
            self.left -= written;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The end of a connection over TLS: by an alert, or without one.
pub(super) fn end_of(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<TlsError>());
    match inner {
        Some(TlsError::AlertReceived(alert)) => alerted(*alert),
        Some(error) => format!("{error:?}"),
        None => "closed".to_owned(),
    }
}

pub(super) fn alerted(alert: AlertDescription) -> String {
    format!("alert {alert:?}")
}
