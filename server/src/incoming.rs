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

use server_access::Identity;
use service::admission::{Activity, ConnectionPacer, PeerNetwork, paced};
use service::transport::{Acceptor, ByteStream, Listener, Socket};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, Sleep, sleep, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use crate::{
    access::proven,
    args::Config,
    capacity::{EndSignal, Owner, Slot},
    peer::{ConnectionPeer, queue_of},
    shared::Shared,
};

/// The delay after an accept for which the system lacks resources.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);
/// How long the statuses of ended calls have to reach a peer whose certificate is not valid any more.
const FINAL_STATUSES: Duration = Duration::from_secs(1);

/// A connection. It ends when it is idle for too long, its slot is taken, or the server stops. It also ends when its peer reads nothing,
/// or the peer's certificate is not valid any more.
pub(crate) struct Connection {
    stream: ByteStream,
    peer: ConnectionPeer,
    pacer: ConnectionPacer,
    /// How long the peer may read no byte of waiting output.
    write_patience: Duration,
    /// Runs while the system accepts none of the bytes to write.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Ready when the connection must end.
    end: Pin<Box<dyn Future<Output = io::ErrorKind> + Send>>,
    ended: Option<io::ErrorKind>,
    open: OpenConnection,
}

/// The slot of a connection, and its entry in the metrics.
#[derive(Debug)]
struct OpenConnection {
    shared: Arc<Shared>,
    slot: Slot,
}

/// The settings for accepting connections.
#[derive(Clone, Debug)]
pub(crate) struct AcceptSettings {
    pub(crate) shared: Arc<Shared>,
    /// Closes all connections.
    pub(crate) cut: CancellationToken,
    /// Closes the listener.
    pub(crate) stop: CancellationToken,
}

/// Accepts connections until `settings.stop`. When there are too many, a new connection evicts one without a session, or is closed if none
/// can be evicted. Also returns the task that accepts: when it ends, the listener is closed and the file of its socket is gone.
pub(crate) fn accept(
    listener: Listener,
    acceptor: Acceptor,
    settings: AcceptSettings,
) -> (ReceiverStream<io::Result<Connection>>, JoinHandle<()>) {
    let (sender, connections) = mpsc::channel(1);
    let accepting = tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                biased;
                () = settings.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let socket = match accepted {
                Ok(socket) => socket,
                Err(error) => {
                    tracing::warn!(peer = "all", %error, "connection not accepted");
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            };
            let owner = Owner::Unproven(socket.address.ip().into());
            let Ok(slot) = settings
                .shared
                .connections
                .take(owner, 1, EndSignal::default())
            else {
                settings.shared.metrics.connections_refused.inc();
                continue;
            };
            let opening = Connection::open(socket, acceptor.clone(), settings.clone(), slot);
            let sender = sender.clone();
            // A slow handshake delays no other connection.
            tokio::spawn(async move {
                if let Some(connection) = opening.await {
                    // The receiver is gone once the server stops.
                    let _ = sender.send(Ok(connection)).await;
                }
            });
        }
    });
    (ReceiverStream::new(connections), accepting)
}

impl Connection {
    /// Identifies the peer. `None` if the peer is too slow or not allowed, or another connection takes its slot.
    async fn open(
        socket: Socket,
        acceptor: Acceptor,
        settings: AcceptSettings,
        slot: Slot,
    ) -> Option<Self> {
        let AcceptSettings { shared, cut, .. } = settings;
        // Until the peer has proved an identity.
        let source = PeerNetwork::from(socket.address.ip());
        let queue = queue_of(&shared.busy, &Identity::Anonymous, source);
        let open = OpenConnection::new(shared, slot);
        let accepted = tokio::select! {
            biased;
            () = cut.cancelled() => return None,
            _ = open.slot.end().wait() => return None,
            accepted = paced(&queue, acceptor.accept(socket)) => accepted,
        };
        let (stream, proved) = accepted.ok()?;
        if let Some(identity) = proven(&proved.credential) {
            open.slot.handle().prove(&identity);
        }
        let peer = ConnectionPeer::new(proved.clone(), open.slot.handle());
        let (taken, shared) = (open.slot.end().clone(), Arc::clone(&open.shared));
        let activity = peer.activity.clone();
        let ended = async move {
            proved.ended().await;
            sleep(FINAL_STATUSES).await;
        };
        let end = async move {
            tokio::select! {
                biased;
                () = cut.cancelled() => io::ErrorKind::ConnectionAborted,
                _ = taken.wait() => io::ErrorKind::ConnectionAborted,
                () = ended => io::ErrorKind::PermissionDenied,
                () = idle(&activity, &shared.config) => io::ErrorKind::TimedOut,
            }
        };
        Some(Self {
            stream,
            pacer: ConnectionPacer::start(),
            write_patience: open.shared.session_config().patience(),
            stalled: None,
            end: Box::pin(end),
            ended: None,
            peer,
            open,
        })
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.ended.is_none() {
            self.ended = Some(ready!(self.end.as_mut().poll(cx)));
        }
        self.ended
            .map_or(Poll::Pending, |kind| Poll::Ready(kind.into()))
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
        let patience = self.write_patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        if stalled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.poll_done(cx, written)
    }

    /// Passes a result on, or ends a connection that waits for it and must end.
    fn poll_done<T>(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match done {
            Poll::Pending => self.poll_end(cx).map(Err),
            done => done,
        }
    }
}

/// Waits until a connection is idle for too long. Checks from time to time, not at the end of each call.
async fn idle(activity: &Activity, config: &Config) {
    let (first_call, idle) = (config.hello_deadline, config.idle_deadline);
    let mut look = Instant::now() + first_call;
    loop {
        sleep_until(look).await;
        let until = activity.idle_until(first_call, idle);
        if until.is_some_and(|until| until <= Instant::now()) {
            return;
        }
        look = until.unwrap_or_else(|| Instant::now() + idle);
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
            pacer, peer, open, ..
        } = &mut *self;
        // A token identifies the peer only after the connection was accepted.
        ready!(pacer.poll_read(cx, || peer.queue(&open.shared.busy)));
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() {
            self.pacer.rest();
        }
        read
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

    /// TLS accepts bytes before the system does, and hyper does not poll the read of a connection that it flushes or closes.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.poll_done(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.poll_done(cx, closed)
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

impl OpenConnection {
    fn new(shared: Arc<Shared>, slot: Slot) -> Self {
        shared.metrics.connections.inc();
        Self { shared, slot }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.metrics.connections.dec();
    }
}

#[cfg(test)]
mod tests;
