//! Handshakes of TLS, valid or invalid, complete or cut off, and the data after them.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{
    AlertDescription, ClientConfig, Error as TlsError, RootCertStore, crypto::ring, version::TLS13,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    time,
};
use tokio_rustls::TlsConnector;

use crate::{
    guard::Guard,
    script::hex,
    seen::{Seen, one},
    target::Target,
};

/// The maximum time for which a server keeps a connection that it should close.
const PATIENCE: Duration = Duration::from_mins(2);
/// The number of bytes in one read of an answer.
const PIECE: usize = 16 << 10;
/// The type of the first frame of an HTTP/2 server: settings.
const SETTINGS: u8 = 4;

/// Connections with the same acts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handshakes {
    #[serde(default = "one")]
    connections: u64,
    /// The certificate of the client, if any.
    certificate: Option<String>,
    /// The requested protocols.
    #[serde(default = "http2")]
    alpn: Vec<String>,
    /// The number of bytes after which the client falls silent.
    cut: Option<usize>,
    /// The data after the handshake, as text and as bytes.
    #[serde(default)]
    text: String,
    #[serde(default)]
    hex: String,
    /// The number of key updates after the handshake.
    #[serde(default)]
    key_updates: u64,
    /// Whether the connections stay open and are not read to their end.
    #[serde(default)]
    hold: bool,
}

/// A connection that passes this number of bytes, and then none.
struct Cut {
    stream: TcpStream,
    left: usize,
}

fn http2() -> Vec<String> {
    vec!["h2".to_owned()]
}

// === impl Handshakes ===

impl Handshakes {
    /// Opens all connections.
    pub(crate) async fn run(&self, target: &Target) -> Seen {
        let config = Arc::new(self.config(target.guard()));
        let connection = || {
            let (this, address, config) = (
                self.clone(),
                target.address().to_owned(),
                Arc::clone(&config),
            );
            async move { this.connection(&address, config).await }
        };
        Seen::of_connections(self.connections, connection).await
    }

    async fn connection(&self, address: &str, config: Arc<ClientConfig>) -> Seen {
        let Ok(stream) = TcpStream::connect(address).await else {
            return Seen::ended("closed");
        };
        let left = self.cut.unwrap_or(usize::MAX);
        let name = ServerName::try_from("localhost").expect("a name");
        let handshake = TlsConnector::from(config).connect(name, Cut { stream, left });
        let mut stream = match time::timeout(PATIENCE, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Seen::ended(end_of(&error)),
            Err(_) => return Seen::ended("open"),
        };
        for _ in 0..self.key_updates {
            if stream.get_mut().1.refresh_traffic_keys().is_err() || stream.flush().await.is_err() {
                break;
            }
        }
        let said = [self.text.clone().into_bytes(), hex(&self.hex)].concat();
        // The test reads how the connection ends.
        let _ = stream.write_all(&said).await;
        let _ = stream.flush().await;
        if self.hold {
            return Seen::held(stream);
        }
        read(&mut stream).await
    }

    fn config(&self, guard: &Guard) -> ClientConfig {
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

/// Reads to the end. Distinguishes answers in HTTP.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Seen {
    let (mut answer, mut piece) = (Vec::new(), vec![0; PIECE]);
    let whole = async {
        loop {
            match stream.read(&mut piece).await {
                Ok(0) => return "closed".to_owned(),
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                Err(error) => return end_of(&error),
            }
        }
    };
    let end = time::timeout(PATIENCE, whole).await;
    let text = String::from_utf8_lossy(&answer);
    let code = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    let mut seen = Seen::ended(match (code, end) {
        (Some(code), _) => format!("HTTP {code}"),
        (None, Ok(end)) if answer.get(3) == Some(&SETTINGS) => format!("served and {end}"),
        (None, Ok(end)) => end,
        (None, Err(_)) => "open".to_owned(),
    });
    seen.bytes = answer.len();
    seen
}

/// The end of a connection: by an alert, or without one.
fn end_of(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<TlsError>());
    match inner {
        Some(TlsError::AlertReceived(alert)) => alerted(*alert),
        Some(error) => format!("{error:?}"),
        None => "closed".to_owned(),
    }
}

/// The end of a connection by an alert.
pub(crate) fn alerted(alert: AlertDescription) -> String {
    format!("alert {alert:?}")
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
