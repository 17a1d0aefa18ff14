//! From an endpoint to a connection.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::{
    net::{TcpStream, UnixStream},
    sync::watch,
};
use tokio_rustls::{TlsConnector, TlsStream};
use tower::Service;

use crate::Fault;
use crate::transport::{
    args::ClientArgs,
    credentials::client_config,
    endpoint::{Endpoint, HostPort, ListenEndpoint},
    failure::{EXPOSED, HandshakeError, plain_text},
    metrics::Metrics,
    reload,
    stream::ByteStream,
};

/// Makes connections to one server. Each connection uses the current content of the files. Clones share the files.
///
/// A [`Service`] for `Endpoint::connect_with_connector` of tonic, which ignores the URI of the call.
#[derive(Clone, Debug)]
pub struct Connector {
    endpoint: Endpoint,
    tls: Option<Tls>,
    metrics: Metrics,
}

#[derive(Clone, Debug)]
struct Tls {
    settings: watch::Receiver<Arc<ClientConfig>>,
    name: ServerName<'static>,
}

impl Connector {
    /// Reads the flags and loads the files, which are watched from now on. Warns of plain text that leaves this machine.
    ///
    /// # Errors
    /// If the files are invalid, flags are missing or without effect, or plain text would leave this machine without `--insecure`.
    pub fn new(endpoint: Endpoint, args: &ClientArgs, metrics: Metrics) -> Result<Self, Fault> {
        Self::by_flag("--server", endpoint, args, metrics)
    }

    /// As [`Self::new`], for a peer that another flag names.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn by_flag(
        flag: &str,
        endpoint: Endpoint,
        args: &ClientArgs,
        metrics: Metrics,
    ) -> Result<Self, Fault> {
        let tls = match &endpoint {
            Endpoint::Https(authority) => Some(Tls::new(authority, args, &metrics)?),
            Endpoint::Http(_) | Endpoint::Unix(_)
                if args.files.is_given() || args.tls_server_name.is_some() =>
            {
                return Err(Fault::new(format!(
                    "{endpoint} does not use TLS, but flags for it are given (--tls-…); remove them, or write https://HOST:PORT"
                )));
            }
            Endpoint::Http(_) if !endpoint.is_local() => {
                if !args.insecure {
                    return Err(plain_text(flag, endpoint));
                }
                crate::failure::warn(EXPOSED);
                None
            }
            Endpoint::Http(_) | Endpoint::Unix(_) => None,
        };
        Ok(Self {
            endpoint,
            tls,
            metrics,
        })
    }

    /// A connector for the sockets of a server on this machine, which speaks plain text.
    pub fn local(server: &ListenEndpoint) -> Self {
        let endpoint = match server {
            ListenEndpoint::Tcp(address) => Endpoint::Http(HostPort {
                host: address.ip().to_string(),
                port: address.port(),
            }),
            ListenEndpoint::Unix(path) => Endpoint::Unix(path.clone()),
        };
        Self {
            endpoint,
            tls: None,
            metrics: Metrics::default(),
        }
    }

    /// The endpoint of the server.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    async fn connect(self) -> Result<ByteStream, Fault> {
        let reached = match &self.endpoint {
            Endpoint::Http(at) | Endpoint::Https(at) => tcp(at).await.map(ByteStream::Tcp),
            Endpoint::Unix(path) => UnixStream::connect(path).await.map(ByteStream::Unix),
        };
        let stream = reached.map_err(|error| Fault::because("cannot connect", error))?;
        match (self.tls, stream) {
            (Some(tls), ByteStream::Tcp(stream)) => tls.connect(stream).await.map_err(|source| {
                self.metrics.handshake_failed(source.reason());
                Fault::because("cannot connect by TLS", source)
            }),
            (_, stream) => Ok(stream),
        }
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<ByteStream>;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<ByteStream>, Fault>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async { connector.connect().await.map(TokioIo::new) })
    }
}

async fn tcp(authority: &HostPort) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((authority.host.as_str(), authority.port)).await?;
    // Without `TCP_NODELAY`, small frames wait for acknowledgements, but the connection works.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

impl Tls {
    fn new(authority: &HostPort, args: &ClientArgs, metrics: &Metrics) -> Result<Self, Fault> {
        let ClientArgs {
            files,
            tls_server_name,
            insecure: _,
        } = args;
        if files.tls_ca.is_none() {
            return Err(Fault::new("--server https://… needs --tls-ca beside it"));
        }
        let name = tls_server_name.as_ref().unwrap_or(&authority.host);
        let wrong = |_| {
            Fault::new(format!(
                "{name:?} cannot be the name in a certificate; set a name with --tls-server-name"
            ))
        };
        Ok(Self {
            name: ServerName::try_from(name.clone()).map_err(wrong)?,
            settings: reload::load(files, metrics, client_config)?,
        })
    }

    async fn connect(self, stream: TcpStream) -> Result<ByteStream, HandshakeError> {
        let config = Arc::clone(&self.settings.borrow());
        let connecting = TlsConnector::from(config).connect(self.name, stream);
        let stream = connecting.await?;
        Ok(ByteStream::Tls(Box::new(TlsStream::Client(stream))))
    }
}
