//! The way in: accepts connections within the limit, and gives up those that never speak.
//!
//! hyper keeps a connection on which nothing ever comes for as long as the peer likes, and tonic has no way to close the
//! connections that are left after a drain; both are done here, below HTTP/2.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::{Sleep, sleep},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::metrics::Metrics;

/// How long to wait when the system has no room for another connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A TCP connection that ends when nothing comes at first, or when the server is through.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    /// Runs until the first byte has come.
    first_byte: Option<Pin<Box<Sleep>>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    _permit: ConnectionPermit,
}

/// Lets a connection be open, and counts it.
#[derive(Debug)]
struct ConnectionPermit {
    metrics: Metrics,
    _permit: OwnedSemaphorePermit,
}

/// How connections are accepted.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) connections_max: usize,
    pub(crate) first_byte: Duration,
    pub(crate) metrics: Metrics,
    /// Closes all connections.
    pub(crate) cut: CancellationToken,
    /// Closes the listener.
    pub(crate) stop: CancellationToken,
}

/// Accepts connections until `terms.stop`; beyond the limit they wait in the system's queue.
pub(crate) fn accept(
    listener: TcpListener,
    terms: Terms,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, connections) = mpsc::channel(1);
    tokio::spawn(async move {
        let stop = terms.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = accept_all(listener, &terms, &sender) => {}
        }
    });
    ReceiverStream::new(connections)
}

async fn accept_all(
    listener: TcpListener,
    terms: &Terms,
    sender: &mpsc::Sender<io::Result<Connection>>,
) {
    let room = Arc::new(Semaphore::new(terms.connections_max));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                if sender
                    .send(Ok(Connection::new(stream, terms, permit)))
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "connection not accepted");
                sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
}

// === impl Connection ===

impl Connection {
    fn new(stream: TcpStream, terms: &Terms, permit: OwnedSemaphorePermit) -> Self {
        // Without it, small frames wait for acknowledgements; the connection works all the same.
        let _ = stream.set_nodelay(true);
        terms.metrics.connections.inc();
        Self {
            stream,
            first_byte: Some(Box::pin(sleep(terms.first_byte))),
            cut: Box::pin(terms.cut.clone().cancelled_owned()),
            _permit: ConnectionPermit {
                metrics: terms.metrics.clone(),
                _permit: permit,
            },
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
        }
        match &mut self.first_byte {
            Some(timer) => timer
                .as_mut()
                .poll(cx)
                .map(|()| io::ErrorKind::TimedOut.into()),
            None => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.first_byte = None;
                }
                Poll::Ready(read)
            }
            Poll::Pending => self.poll_end(cx).map(Err),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
