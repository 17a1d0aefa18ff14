//! The way in: accepts connections as long as there are places, and gives up those that do nothing.
//!
//! hyper keeps a connection on which nothing happens, or whose peer reads nothing, for as long as the peer likes, and tonic has no
//! way to close the connections that are left after a drain; all of this is done here, below HTTP/2.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::{
    metrics::Metrics,
    peer::Peer,
    places::{Place, Places, Rank},
};

/// How long to wait when the system has no room for another connection.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A TCP connection that ends when it is idle for too long, its peer reads nothing, its place goes to another, or the server is
/// through.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    peer: Peer,
    patience: Patience,
    /// When to look whether the connection is idle.
    look: Pin<Box<Sleep>>,
    /// Runs while the system takes nothing of what is to be written.
    stalled: Option<Pin<Box<Sleep>>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    taken: Pin<Box<WaitForCancellationFutureOwned>>,
    _open: OpenConnection,
}

/// Holds a connection's place, and counts it.
#[derive(Debug)]
struct OpenConnection {
    metrics: Metrics,
    _place: Place,
}

/// How long a connection may be of no use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// From its beginning to its first call.
    pub(crate) first_call: Duration,
    /// Without a call.
    pub(crate) idle: Duration,
    /// Without a byte being read by the peer while there are some for it.
    pub(crate) write: Duration,
}

/// How connections are accepted.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) places: Arc<Places>,
    pub(crate) patience: Patience,
    pub(crate) metrics: Metrics,
    /// Closes all connections.
    pub(crate) cut: CancellationToken,
    /// Closes the listener.
    pub(crate) stop: CancellationToken,
}

/// Accepts connections until `terms.stop`. Where all places are taken, the connection gives way that has done nothing for longest, or
/// the new one is closed if none may.
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
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let place = terms.places.take(address.ip().into(), Rank::Settled);
                let Ok(place) = place else {
                    terms.metrics.connections_refused.inc();
                    continue;
                };
                let peer = Peer::new(address.ip(), place.handle());
                let connection = Connection::new(stream, peer, terms, place);
                if sender.send(Ok(connection)).await.is_err() {
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
    fn new(stream: TcpStream, peer: Peer, terms: &Terms, place: Place) -> Self {
        // Without it, small frames wait for acknowledgements; the connection works all the same.
        let _ = stream.set_nodelay(true);
        terms.metrics.connections.inc();
        Self {
            stream,
            peer,
            patience: terms.patience,
            look: Box::pin(sleep(terms.patience.first_call)),
            stalled: None,
            cut: Box::pin(terms.cut.clone().cancelled_owned()),
            taken: Box::pin(place.wait_taken()),
            _open: OpenConnection {
                metrics: terms.metrics.clone(),
                _place: place,
            },
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let ended = [&mut self.cut, &mut self.taken];
        if ended
            .into_iter()
            .any(|end| end.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
        }
        self.poll_idle(cx).map(|()| io::ErrorKind::TimedOut.into())
    }

    /// Looks once in a while rather than at each call's end.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.look.as_mut().poll(cx));
            let Patience {
                first_call, idle, ..
            } = self.patience;
            let (now, until) = (Instant::now(), self.peer.idle_until(first_call, idle));
            if until.is_some_and(|until| until <= now) {
                return Poll::Ready(());
            }
            self.look
                .as_mut()
                .reset(until.unwrap_or_else(|| now + idle));
        }
    }

    /// Returns what became of a write, or the end of a peer that has read nothing for too long.
    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let until = Instant::now() + self.patience.write;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        if stalled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.poll_end(cx).map(Err)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.poll_end(cx) {
            Poll::Ready(end) => Poll::Ready(Err(end)),
            Poll::Pending => Pin::new(&mut self.stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.poll_written(cx, written)
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, buffers);
        self.poll_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
