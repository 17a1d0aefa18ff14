//! The connections of the admin port: few, and short-lived unless a handler keeps them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use crate::admission::{EndSignal, Owner, Pool, Slot, Yields};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, sleep_until},
};

/// The maximum age of a connection that no handler keeps. A scraper connects again.
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

/// Exempts a connection from its maximum age and from eviction. The drop ends the connection, even if its peer has left bytes unread.
///
/// The caller bounds the number of kept connections, because the limit of the endpoint does not include them.
#[derive(Debug)]
pub struct KeptConnection(EndSignal<()>);

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
    born: Instant,
}

/// A connection with a maximum age.
pub(super) struct AdminConnection {
    stream: TcpStream,
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
    /// Waits until the connection is told to end, or has reached its maximum age and is not kept.
    async fn wait_over(&self) {
        tokio::select! {
            biased;
            () = self.end.wait() => return,
            () = sleep_until(self.born + AGE_MAX) => {}
        }
        if self.slot.lock().is_none() {
            self.end.wait().await;
        }
    }
}

impl AdminPeer {
    /// Keeps the connection until the return value is dropped. From now on it does not count for the limit.
    pub fn keep(&self) -> KeptConnection {
        drop(self.open.slot.lock().take());
        KeptConnection(self.open.end.clone())
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        self.0.send(());
    }
}

impl AdminConnection {
    fn new(stream: TcpStream, slot: Slot<(), ()>) -> Self {
        let open = Arc::new(Open {
            end: slot.end().clone(),
            slot: Mutex::new(Some(slot)),
            born: Instant::now(),
        });
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

    use tokio::time::advance;

    use super::*;

    async fn is_over(connection: &AdminConnection) -> bool {
        tokio::select! {
            biased;
            () = connection.open.wait_over() => true,
            () = ready(()) => false,
        }
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
    async fn connection_ends_with_its_age_unless_it_is_kept() {
        let connections = connections(2).await;
        let (loose, _a) = pair(&connections).await;
        let (kept_one, _b) = pair(&connections).await;
        let kept = keep(&kept_one);
        assert!(!is_over(&loose).await, "it is young");
        advance(AGE_MAX).await;
        assert!(is_over(&loose).await, "it is over");
        assert!(!is_over(&kept_one).await, "it lasts");
        drop(kept);
        assert!(is_over(&kept_one).await, "it was ended");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn address_with_most_connections_gives_way_and_not_the_oldest() {
        let connections = connections(3).await;
        let (few, many) = ([127, 0, 0, 2], [127, 0, 0, 1]);
        let (scrape, _a) = pair_from(&connections, few).await;
        let (first, _b) = pair_from(&connections, many).await;
        let (second, _c) = pair_from(&connections, many).await;
        let (third, _d) = pair_from(&connections, many).await;
        assert!(is_over(&first).await, "it gave way");
        for connection in [&scrape, &second, &third] {
            assert!(!is_over(connection).await, "it has a place");
        }
    }

    #[tokio::test]
    async fn kept_connections_neither_count_nor_give_way() {
        let connections = connections(1).await;
        let (kept_one, _a) = pair(&connections).await;
        let _kept = keep(&kept_one);
        let (loose, _b) = pair(&connections).await;
        assert!(!is_over(&loose).await, "it has a place");
        let (newest, _c) = pair(&connections).await;
        assert!(!is_over(&newest).await, "it has a place");
        assert!(is_over(&loose).await, "it gave way");
        assert!(!is_over(&kept_one).await, "it is kept");
    }
}
