//! The connections of the admin port: few, and short-lived unless a handler keeps them.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::admission::{EndSignal, Owner, Pool, Slot, Yields};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::io::InspectWriter;

/// The maximum age of a connection. A kept one restarts its age whenever its peer reads. A scraper connects again.
const AGE_MAX: Duration = Duration::from_secs(20);
/// The delay after an accept that failed, perhaps for lack of resources.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The peer of a connection, as `ConnectInfo<AdminPeer>` among the extensions of each request.
#[derive(Clone, Debug)]
pub struct AdminPeer {
    /// The address of the peer.
    pub address: SocketAddr,
    open: Arc<Open>,
}

/// Exempts a connection from its maximum age and from eviction, until the drop.
///
/// The caller bounds the number of kept connections, because the limit of the endpoint does not include them.
#[derive(Debug)]
pub struct KeptConnection(Arc<Open>);

/// Accepts connections. Beyond the limit, a new one displaces the oldest one of the peer with most.
#[derive(Debug)]
pub(super) struct AdminConnections {
    listener: TcpListener,
    pool: Arc<Pool<(), ()>>,
}

/// The state of an open connection that is shared with its handlers.
#[derive(Debug)]
struct Open {
    /// Sent by a newer connection that takes the slot, or by a handler.
    end: EndSignal<()>,
    /// `None` once a handler keeps the connection.
    slot: Mutex<Option<Slot<(), ()>>>,
    /// The number of handlers that keep the connection.
    kept: AtomicUsize,
    /// The beginning of the connection's age.
    born: Mutex<Instant>,
}

/// Called with the bytes that the peer has been sent.
type OnWrite = Box<dyn FnMut(&[u8]) + Send>;

/// A connection with a maximum age.
pub(super) struct AdminConnection {
    stream: InspectWriter<TcpStream, OnWrite>,
    open: Arc<Open>,
}

impl AdminConnections {
    pub(super) fn new(listener: TcpListener, max: usize) -> Self {
        let pool = Pool::new(max, Yields::Oldest, ());
        Self { listener, pool }
    }

    /// Waits for a connection. A lack of system resources only delays the return.
    pub(super) async fn accept(&self) -> (AdminConnection, AdminPeer) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let owner = Owner::Unproven(address.ip().into());
                    // No slot is settled, so a new connection always gets one, unless the limit is 0.
                    if let Ok(slot) = self.pool.take(owner, 1, EndSignal::default()) {
                        let connection = AdminConnection::new(stream, slot);
                        let open = Arc::clone(&connection.open);
                        return (connection, AdminPeer { address, open });
                    }
                }
                Err(_) => sleep(ACCEPT_AGAIN).await,
            }
        }
    }
}

impl Open {
    /// Restarts the age of a kept connection, because its peer reads.
    fn rejuvenate(&self) {
        if self.kept.load(Ordering::Acquire) > 0 {
            *self.born.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    /// Waits until the connection is told to end, or has reached its maximum age.
    async fn wait_over(&self) {
        loop {
            let born = *self.born.lock().unwrap_or_else(PoisonError::into_inner);
            if born.elapsed() >= AGE_MAX {
                return;
            }
            tokio::select! {
                biased;
                () = self.end.wait() => return,
                () = sleep_until(born + AGE_MAX) => {}
            }
        }
    }
}

impl AdminPeer {
    /// Keeps the connection until the return value is dropped. From now on it does not count for the limit.
    pub fn keep(&self) -> KeptConnection {
        self.open.kept.fetch_add(1, Ordering::AcqRel);
        let slot = self.open.slot.lock();
        drop(slot.unwrap_or_else(PoisonError::into_inner).take());
        KeptConnection(Arc::clone(&self.open))
    }
}

impl KeptConnection {
    /// Ends the connection, even if its peer has left bytes unread.
    pub fn end(&self) {
        self.0.end.send(());
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        self.0.kept.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AdminConnection {
    fn new(stream: TcpStream, slot: Slot<(), ()>) -> Self {
        let open = Arc::new(Open {
            end: slot.end().clone(),
            slot: Mutex::new(Some(slot)),
            kept: AtomicUsize::new(0),
            born: Mutex::new(Instant::now()),
        });
        let written = Arc::clone(&open);
        let rejuvenate: OnWrite = Box::new(move |_| written.rejuvenate());
        let stream = InspectWriter::new(stream, rejuvenate);
        Self { stream, open }
    }

    /// Answers requests until the peer closes the connection, or the connection [is over](Open::wait_over).
    pub(super) async fn serve(self, router: Router) {
        let (stream, service) = (TokioIo::new(self.stream), TowerToHyperService::new(router));
        tokio::select! {
            biased;
            () = self.open.wait_over() => {}
            // The end of a connection concerns only its peer.
            _ = http1::Builder::new().serve_connection(stream, service) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        time::advance,
    };

    use super::*;

    /// Whether a connection is over. Otherwise its peer is sent a byte.
    async fn is_over(connection: &mut AdminConnection) -> bool {
        let is_over = tokio::select! {
            biased;
            () = connection.open.wait_over() => true,
            () = ready(()) => false,
        };
        if !is_over {
            let sent = connection.stream.write_all(b"x").await;
            sent.expect("its peer is there");
        }
        is_over
    }

    async fn pair(connections: &AdminConnections) -> (AdminConnection, TcpStream) {
        pair_from(connections, [127, 0, 0, 1]).await
    }

    async fn connections(max: usize) -> AdminConnections {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        AdminConnections::new(listener, max)
    }

    async fn pair_from(
        connections: &AdminConnections,
        address: [u8; 4],
    ) -> (AdminConnection, TcpStream) {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        let own = SocketAddr::from((address, 0));
        socket.bind(own).expect("an address of this machine");
        let there = connections.listener.local_addr().expect("it listens");
        let peer = socket.connect(there).await.expect("it listens");
        (connections.accept().await.0, peer)
    }

    fn keep(connection: &AdminConnection) -> KeptConnection {
        let peer = AdminPeer {
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            open: Arc::clone(&connection.open),
        };
        peer.keep()
    }

    #[tokio::test(start_paused = true)]
    async fn kept_connection_lasts_for_as_long_as_its_peer_takes_bytes() {
        let connections = connections(1).await;
        let (mut connection, mut peer) = pair(&connections).await;
        let kept = keep(&connection);
        for _ in 0..3 {
            advance(AGE_MAX * 3 / 4).await;
            assert!(!is_over(&mut connection).await, "it lasts");
            peer.read_u8().await.expect("it is read");
        }
        advance(AGE_MAX * 2).await;
        assert!(is_over(&mut connection).await, "it is over");
        drop(kept);
    }

    #[tokio::test(start_paused = true)]
    async fn other_connections_end_with_their_age() {
        let connections = connections(1).await;
        let (mut connection, _peer) = pair(&connections).await;
        assert!(!is_over(&mut connection).await, "it is young");
        advance(AGE_MAX).await;
        assert!(is_over(&mut connection).await);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn address_with_most_connections_gives_way_and_not_the_oldest() {
        let connections = connections(3).await;
        let (few, many) = ([127, 0, 0, 2], [127, 0, 0, 1]);
        let (mut scrape, _a) = pair_from(&connections, few).await;
        let (mut first, _b) = pair_from(&connections, many).await;
        let (mut second, _c) = pair_from(&connections, many).await;
        let (mut third, _d) = pair_from(&connections, many).await;
        assert!(is_over(&mut first).await, "it gave way");
        for connection in [&mut scrape, &mut second, &mut third] {
            assert!(!is_over(connection).await, "it has a place");
        }
    }

    #[tokio::test]
    async fn kept_connections_neither_count_nor_give_way() {
        let connections = connections(1).await;
        let (mut kept_one, _a) = pair(&connections).await;
        let kept = keep(&kept_one);
        let (mut loose, _b) = pair(&connections).await;
        assert!(!is_over(&mut loose).await, "it has a place");
        let (mut newest, _c) = pair(&connections).await;
        assert!(!is_over(&mut newest).await, "it has a place");
        assert!(is_over(&mut loose).await, "it gave way");
        assert!(!is_over(&mut kept_one).await, "it is kept");
        kept.end();
        assert!(is_over(&mut kept_one).await, "it was ended");
    }
}
