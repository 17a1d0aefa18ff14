//! Accepts connections up to a limit, and closes idle ones.
//!
//! hyper keeps a silent connection for as long as the peer likes, also if the peer reads nothing. tonic cannot close the connections
//! that remain after a drain. So this module does both, below HTTP/2.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use admission::{ConnectionPacer, FairQueue, PeerNetwork, PlaceRank, paced};
use server_access::Identity;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;
use transport::{Acceptor, ByteStream, Ended, Listener, Socket};

use crate::{
    access::proven,
    capacity::{Place, Places},
    metrics::Metrics,
    peer::ConnectionPeer,
};

/// The delay after an accept for which the system lacks resources.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);
/// How long the statuses of ended calls have to reach a peer whose certificate is not valid any more.
const FINAL_STATUSES: Duration = Duration::from_secs(1);
/// The first byte of a TLS handshake. HTTP/2 begins with `P`.
const TLS_HANDSHAKE: u8 = 0x16;

/// A connection. It ends when it is idle for too long, its place is taken, or the server stops. It also ends when its peer reads nothing,
/// or the peer's certificate is not valid any more.
pub(crate) struct Connection {
    stream: ByteStream,
    peer: ConnectionPeer,
    timeouts: ConnectionTimeouts,
    pacer: ConnectionPacer,
    queue: FairQueue,
    has_received: bool,
    /// The time of the next idle check.
    look: Pin<Box<Sleep>>,
    /// Runs while the system accepts none of the bytes to write.
    stalled: Option<Pin<Box<Sleep>>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    taken: Pin<Box<WaitForCancellationFutureOwned>>,
    open: OpenConnection,
}

/// The place of a connection, and its entry in the metrics.
#[derive(Debug)]
struct OpenConnection {
    metrics: Metrics,
    place: Place,
}

/// How long a connection may be useless.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionTimeouts {
    /// From the beginning to the first call.
    pub(crate) first_call: Duration,
    /// From one call to the next.
    pub(crate) idle: Duration,
    /// Without the peer reading a byte of waiting output.
    pub(crate) write: Duration,
}

/// The settings for accepting connections.
#[derive(Clone, Debug)]
pub(crate) struct AcceptSettings {
    pub(crate) places: Arc<Places>,
    pub(crate) timeouts: ConnectionTimeouts,
    pub(crate) metrics: Metrics,
    /// The queue of busy connections.
    pub(crate) queue: FairQueue,
    /// Closes all connections.
    pub(crate) cut: CancellationToken,
    /// Closes the listener.
    pub(crate) stop: CancellationToken,
}

/// Accepts connections until `settings.stop`. When all places are taken, a new connection evicts the idlest one, or is closed if none
/// can be evicted. Also returns the task that accepts: when it ends, the listener is closed and the file of its socket is gone.
pub(crate) fn accept(
    mut listener: Listener,
    acceptor: Acceptor,
    settings: AcceptSettings,
) -> (ReceiverStream<io::Result<Connection>>, JoinHandle<()>) {
    let (sender, connections) = mpsc::channel(1);
    let accepting = tokio::spawn(async move {
        let stop = settings.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = accept_all(&mut listener, &acceptor, &settings, &sender) => {}
        }
    });
    (ReceiverStream::new(connections), accepting)
}

async fn accept_all(
    listener: &mut Listener,
    acceptor: &Acceptor,
    settings: &AcceptSettings,
    sender: &mpsc::Sender<io::Result<Connection>>,
) {
    loop {
        match listener.accept().await {
            Ok(socket) => {
                let place = settings
                    .places
                    .take(socket.address().ip().into(), PlaceRank::Settled);
                let Ok(place) = place else {
                    settings.metrics.connections_refused.inc();
                    continue;
                };
                let (acceptor, settings, sender) =
                    (acceptor.clone(), settings.clone(), sender.clone());
                // A slow handshake delays no other connection.
                tokio::spawn(async move {
                    if let Some(connection) =
                        Connection::open(socket, &acceptor, &settings, place).await
                    {
                        // The receiver is gone once the server stops.
                        let _ = sender.send(Ok(connection)).await;
                    }
                });
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
    /// Identifies the peer. `None` if the peer is too slow or not allowed, or another connection takes its place.
    async fn open(
        socket: Socket,
        acceptor: &Acceptor,
        settings: &AcceptSettings,
        place: Place,
    ) -> Option<Self> {
        // Until the peer has proved an identity.
        let source = PeerNetwork::from(socket.address().ip());
        let queue = settings.queue.peer((None::<Identity>, source));
        let open = OpenConnection::new(settings, place);
        let accepted = tokio::select! {
            biased;
            () = settings.cut.cancelled() => return None,
            () = open.place.wait_taken() => return None,
            accepted = paced(&queue, acceptor.accept(socket)) => accepted,
        };
        let (stream, proved) = accepted.ok()?;
        if let Some(identity) = proven(&proved.credential) {
            open.place.handle().prove(&identity);
        }
        let peer = ConnectionPeer::new(proved.clone(), open.place.handle());
        Some(Self {
            stream,
            timeouts: settings.timeouts,
            pacer: ConnectionPacer::start(),
            queue: settings.queue.clone(),
            look: Box::pin(sleep(settings.timeouts.first_call)),
            stalled: None,
            cut: Box::pin(settings.cut.clone().cancelled_owned()),
            taken: Box::pin(open.place.wait_taken()),
            ended: Box::pin(after_end(proved.ended())),
            has_received: false,
            peer,
            open,
        })
    }

    /// Notes received bytes. A plain-text connection must not begin with a TLS handshake.
    fn check_first(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(first) = bytes.first().filter(|_| !self.has_received) else {
            return Ok(());
        };
        self.has_received = true;
        if *first == TLS_HANDSHAKE && !matches!(self.stream, ByteStream::Tls(_)) {
            let metrics = &self.open.metrics.tls;
            metrics.handshake_failed("tls_to_plain_text");
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let ended = [&mut self.cut, &mut self.taken];
        if ended
            .into_iter()
            .any(|end| end.as_mut().poll(cx).is_ready())
        {
            return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
        }
        if self.ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(io::ErrorKind::PermissionDenied.into());
        }
        self.poll_idle(cx).map(|()| io::ErrorKind::TimedOut.into())
    }

    /// Checks from time to time, not at the end of each call.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.look.as_mut().poll(cx));
            let ConnectionTimeouts {
                first_call, idle, ..
            } = self.timeouts;
            let (now, until) = (
                Instant::now(),
                self.peer.activity().idle_until(first_call, idle),
            );
            if until.is_some_and(|until| until <= now) {
                return Poll::Ready(());
            }
            self.look
                .as_mut()
                .reset(until.unwrap_or_else(|| now + idle));
        }
    }

    /// Passes the result of a write on, or ends a peer that has read nothing for too long.
    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let until = Instant::now() + self.timeouts.write;
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
        if let Poll::Ready(end) = self.poll_end(cx) {
            return Poll::Ready(Err(end));
        }
        let Self {
            pacer, peer, queue, ..
        } = &mut *self;
        // A token identifies the peer only after the connection was accepted.
        ready!(pacer.poll_read(cx, || peer.queue(queue)));
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buffer) else {
            self.pacer.rest();
            return Poll::Pending;
        };
        read?;
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.check_first(bytes))
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
    type ConnectInfo = ConnectionPeer;

    fn connect_info(&self) -> ConnectionPeer {
        self.peer.clone()
    }
}

/// Waits until a certificate is not valid any more, and a little longer.
async fn after_end(ended: impl Future<Output = Ended>) {
    ended.await;
    sleep(FINAL_STATUSES).await;
}

// === impl OpenConnection ===

impl OpenConnection {
    fn new(settings: &AcceptSettings, place: Place) -> Self {
        settings.metrics.connections.inc();
        Self {
            metrics: settings.metrics.clone(),
            place,
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}
