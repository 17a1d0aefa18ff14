//! The connections of the admin port: few, and none for long but those that a handler keeps.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a connection may last, and one that is kept from the last bytes that its peer took. A scraper connects again.
const AGE_MAX: Duration = Duration::from_secs(20);
/// How long is waited where the system has no room for another connection.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// The peer of a connection, as `ConnectInfo<Peer>` among the extensions of each request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The other end.
    pub address: SocketAddr,
    open: Arc<Open>,
}

/// Keeps a connection open beyond its age, and from giving way to others, until this is dropped.
///
/// Whoever keeps connections bounds how many: they come on top of those that the endpoint bounds.
#[derive(Debug)]
pub struct Kept(Arc<Open>);

/// Accepts connections, of which a new one displaces the oldest where there are too many.
#[derive(Debug)]
pub(super) struct Connections {
    listener: TcpListener,
    max: usize,
    /// Those that are open, the oldest first.
    open: VecDeque<Weak<Open>>,
}

/// What is known of an open connection from outside.
#[derive(Debug, Default)]
struct Open {
    end: CancellationToken,
    /// How many handlers keep it.
    kept: AtomicUsize,
}

/// A connection that ends when its time has come.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    age: Pin<Box<Sleep>>,
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    open: Arc<Open>,
}

// === impl Connections ===

impl Connections {
    pub(super) const fn new(listener: TcpListener, max: usize) -> Self {
        Self {
            listener,
            max,
            open: VecDeque::new(),
        }
    }

    /// Waits for a connection, also where the system has no room for one at present.
    pub(super) async fn accept(&mut self) -> (Connection, Peer) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let connection = self.open(stream);
                    let open = Arc::clone(&connection.open);
                    return (connection, Peer { address, open });
                }
                Err(error) if is_of_peer(&error) => {}
                Err(_) => sleep(ACCEPT_AGAIN).await,
            }
        }
    }

    fn open(&mut self, stream: TcpStream) -> Connection {
        self.open.retain(|connection| connection.strong_count() > 0);
        let open = self.open.iter().filter_map(Weak::upgrade);
        let loose: Vec<_> = open.filter(|open| !open.is_kept()).collect();
        let surplus = (loose.len() + 1).saturating_sub(self.max);
        loose
            .iter()
            .take(surplus)
            .for_each(|open| open.end.cancel());
        let open = Arc::<Open>::default();
        self.open.push_back(Arc::downgrade(&open));
        Connection {
            stream,
            age: Box::pin(sleep(AGE_MAX)),
            end: Box::pin(open.end.clone().cancelled_owned()),
            open,
        }
    }
}

/// Returns whether a connection has failed before it was accepted.
fn is_of_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

// === impl Open ===

impl Open {
    fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Acquire) > 0
    }
}

// === impl Peer ===

impl Peer {
    /// Keeps the connection until what is returned is dropped.
    #[must_use]
    pub fn keep(&self) -> Kept {
        self.open.kept.fetch_add(1, Ordering::AcqRel);
        Kept(Arc::clone(&self.open))
    }
}

// === impl Kept ===

impl Kept {
    /// Ends the connection, however much its peer has left unread.
    pub fn end(&self) {
        self.0.end.cancel();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Connection ===

impl Connection {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let is_over =
            self.end.as_mut().poll(cx).is_ready() || self.age.as_mut().poll(cx).is_ready();
        match is_over {
            true => Poll::Ready(io::ErrorKind::TimedOut.into()),
            false => Poll::Pending,
        }
    }

    /// Lets a connection that is kept last on: its peer reads.
    fn rejuvenate(&mut self) {
        if self.open.is_kept() {
            self.age.as_mut().reset(Instant::now() + AGE_MAX);
        }
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
        match self.poll_end(cx) {
            Poll::Ready(end) => Poll::Ready(Err(end)),
            Poll::Pending => {
                let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
                self.rejuvenate();
                Poll::Ready(written)
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        time::advance,
    };

    use super::*;

    /// Returns a connection and its other end.
    async fn pair(connections: &mut Connections) -> (Connection, TcpStream) {
        let address = connections.listener.local_addr().expect("it listens");
        let peer = TcpStream::connect(address).await.expect("it listens");
        (connections.accept().await.0, peer)
    }

    async fn connections(max: usize) -> Connections {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Connections::new(listener, max)
    }

    fn keep(connection: &Connection) -> Kept {
        let peer = Peer {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            open: Arc::clone(&connection.open),
        };
        peer.keep()
    }

    #[tokio::test(start_paused = true)]
    async fn kept_connection_lasts_for_as_long_as_its_peer_takes_bytes() {
        let mut connections = connections(1).await;
        let (mut connection, mut peer) = pair(&mut connections).await;
        let kept = keep(&connection);
        for _ in 0..3 {
            advance(AGE_MAX * 3 / 4).await;
            connection.write_all(b"x").await.expect("it lasts");
            peer.read_u8().await.expect("it is read");
        }
        advance(AGE_MAX * 2).await;
        connection.write_all(b"x").await.expect_err("it is over");
        drop(kept);
    }

    #[tokio::test(start_paused = true)]
    async fn other_connections_end_with_their_age() {
        let mut connections = connections(1).await;
        let (mut connection, _peer) = pair(&mut connections).await;
        connection.write_all(b"x").await.expect("it is young");
        advance(AGE_MAX).await;
        connection.write_all(b"x").await.expect_err("it is over");
    }

    #[tokio::test]
    async fn kept_connections_neither_count_nor_give_way() {
        let mut connections = connections(1).await;
        let (mut kept_one, _a) = pair(&mut connections).await;
        let kept = keep(&kept_one);
        let (mut loose, _b) = pair(&mut connections).await;
        loose.write_all(b"x").await.expect("it has a place");
        let (mut newest, _c) = pair(&mut connections).await;
        newest.write_all(b"x").await.expect("it has a place");
        loose.write_all(b"x").await.expect_err("it gave way");
        kept_one.write_all(b"x").await.expect("it is kept");
        kept.end();
        kept_one.write_all(b"x").await.expect_err("it was ended");
    }
}
