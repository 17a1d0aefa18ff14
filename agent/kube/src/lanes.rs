//! Connections for calls to the API server.
//!
//! An API server allows 100 requests in flight on a connection, and a further request waits without notice. So a request takes the first
//! connection with room, and a connection opens at its first use.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::connect::Client;

/// The most requests in flight on a connection while another has fewer.
pub(crate) const REQUESTS_MAX: usize = 90;

/// The connections. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Lanes(Arc<[Lane]>);

/// A connection, and its number of requests in flight.
#[derive(Debug)]
struct Lane {
    client: Mutex<Client>,
    in_flight: AtomicUsize,
}

/// The place of a request on a connection.
pub(crate) struct LanePermit<'a>(&'a Lane);

impl Lanes {
    /// Creates lanes for these clients.
    ///
    /// # Panics
    /// If there are none.
    pub(crate) fn new(clients: impl IntoIterator<Item = Client>) -> Self {
        let lanes = clients.into_iter().map(|client| Lane {
            client: Mutex::new(client),
            in_flight: AtomicUsize::new(0),
        });
        let lanes: Arc<[_]> = lanes.collect();
        assert!(!lanes.is_empty(), "there is a connection");
        Self(lanes)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Replaces the clients by the next of `clients`, for requests that begin from now on.
    pub(crate) fn replace(&self, clients: &mut impl Iterator<Item = Client>) {
        for (lane, client) in self.0.iter().zip(clients) {
            *lane.client.lock() = client;
        }
    }

    /// Takes a place on the first connection with room, or else on the one with the fewest requests in flight.
    pub(crate) fn enter(&self) -> LanePermit<'_> {
        let with_room = self.0.iter().find_map(|lane| {
            let place = LanePermit::on(lane);
            (lane.in_flight.load(Ordering::Relaxed) <= REQUESTS_MAX).then_some(place)
        });
        with_room.unwrap_or_else(|| {
            let emptiest = self.0.iter();
            let emptiest = emptiest.min_by_key(|lane| lane.in_flight.load(Ordering::Relaxed));
            LanePermit::on(emptiest.unwrap_or(&self.0[0]))
        })
    }
}

impl<'a> LanePermit<'a> {
    fn on(lane: &'a Lane) -> Self {
        lane.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(lane)
    }

    pub(crate) fn client(&self) -> Client {
        self.0.client.lock().clone()
    }
}

impl Drop for LanePermit<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
