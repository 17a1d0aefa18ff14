//! Servers that break protocols below gRPC: HTTP/2 frame by frame, other protocols, invalid TLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use rustls::version::TLS13;
use serde::Deserialize;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

use crate::{guard::Guard, http2::Http2};

/// The acts on each connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wire {
    /// The sent frames: the steps of [`Http2`].
    steps: Vec<String>,
    /// The certificate of the server, by its name in [`Guard::server_pair`]; without one, the server speaks no TLS.
    pub(crate) certificate: Option<String>,
}

/// A server. Dropping it ends its connections.
pub(crate) struct WireServer {
    address: SocketAddr,
    counts: Arc<Counts>,
    speaks_tls: bool,
    first: mpsc::Receiver<()>,
    runtime: Runtime,
}

/// The number of connections, and of completed handshakes.
#[derive(Default)]
struct Counts {
    came: AtomicU64,
    entered: AtomicU64,
}

// === impl WireServer ===

impl WireServer {
    /// Starts a server on a free port of loopback.
    pub(crate) fn start(wire: Wire, guard: &Guard) -> Self {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let counts = Arc::new(Counts::default());
        let pair = wire
            .certificate
            .as_ref()
            .map(|name| guard.server_pair(name));
        let tls = pair.map(|pair| {
            let mut config = pair.server_config(&[&TLS13]);
            config.alpn_protocols = vec![b"h2".to_vec()];
            TlsAcceptor::from(Arc::new(config))
        });
        let (shared, speaks_tls) = (Arc::clone(&counts), tls.is_some());
        let (came, first) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.came.fetch_add(1, Ordering::Relaxed);
                // A test waits only for the first.
                let _ = came.try_send(());
                let connection = (wire.clone(), tls.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let (wire, tls, counts) = connection;
                    // The result of a connection is kept as long as the server.
                    wire.serve(stream, tls, &counts).await;
                });
            }
        });
        Self {
            address,
            counts,
            speaks_tls,
            first,
            runtime,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns whether a first connection came.
    pub(crate) fn wait_for_connection(&self, patience: Duration) -> bool {
        self.first.recv_timeout(patience).is_ok()
    }

    pub(crate) fn let_be(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    /// The number of connections.
    pub(crate) fn connections(&self) -> u64 {
        self.counts.came.load(Ordering::Relaxed)
    }

    /// Whether the server speaks TLS and no connection has completed its handshake.
    pub(crate) fn is_refused(&self) -> bool {
        self.speaks_tls && self.counts.entered.load(Ordering::Relaxed) == 0
    }
}

// === impl Wire ===

impl Wire {
    async fn serve(&self, stream: TcpStream, tls: Option<TlsAcceptor>, counts: &Counts) {
        let http2 = Http2::new(self.steps.clone());
        let seen = match tls {
            None => http2.run_on(stream).await,
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => {
                    counts.entered.fetch_add(1, Ordering::Relaxed);
                    http2.run_on(stream).await
                }
                Err(_) => return,
            },
        };
        if !seen.held.is_empty() {
            std::future::pending::<()>().await;
        }
    }
}
