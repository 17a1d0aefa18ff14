//! A queue of permits that is fair between peers: the peers alternate, however many requests each has in the queue.
//!
//! One request of each peer waits for a permit; the other requests of the peer wait for that one. Both wait in the order of arrival.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::yield_now,
};

/// A queue of permits. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct FairQueue(Arc<QueueState>);

/// The requests of one peer in a queue.
#[derive(Clone, Debug)]
pub struct PeerQueue {
    queue: Arc<QueueState>,
    /// The one request of the peer that waits for a permit.
    turn: Arc<Semaphore>,
}

/// A permit, returned on drop.
#[derive(Debug)]
pub struct Permit {
    _permit: OwnedSemaphorePermit,
    /// The turn of the peer, if a peer has only one permit.
    _turn: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct QueueState {
    permits: Arc<Semaphore>,
    /// Whether a peer has only one permit at a time.
    is_one_for_each_peer: bool,
    hasher: RandomState,
    /// The turns of peers with a request or a session, by a hash of the peer.
    turns: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

impl FairQueue {
    /// A queue with this many permits.
    pub fn of(permits_max: usize) -> Self {
        Self::new(permits_max, false)
    }

    /// A queue with one permit for each peer.
    pub fn one_for_each_peer() -> Self {
        Self::new(usize::MAX, true)
    }

    fn new(permits_max: usize, is_one_for_each_peer: bool) -> Self {
        let permits = permits_max.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(QueueState {
            permits: Arc::new(Semaphore::new(permits)),
            is_one_for_each_peer,
            hasher: RandomState::default(),
            turns: Mutex::default(),
        }))
    }

    /// The queue of a peer.
    pub fn peer(&self, peer: impl Hash) -> PeerQueue {
        let hash = self.0.hasher.hash_one(peer);
        let mut turns = self.0.turns.lock();
        let turn = turns.get(&hash).and_then(Weak::upgrade);
        let turn = turn.unwrap_or_else(|| {
            // Peers that are gone are dropped before the map grows.
            if turns.len() == turns.capacity() {
                turns.retain(|_, turn| turn.strong_count() > 0);
            }
            let turn = Arc::new(Semaphore::new(1));
            turns.insert(hash, Arc::downgrade(&turn));
            turn
        });
        let queue = Arc::clone(&self.0);
        PeerQueue { queue, turn }
    }
}

impl PeerQueue {
    /// Waits for a permit.
    pub async fn enter(&self) -> Permit {
        let turn = next(&self.turn).await;
        let permit = next(&self.queue.permits).await;
        Permit {
            _permit: permit,
            _turn: self.queue.is_one_for_each_peer.then_some(turn),
        }
    }

    /// Waits for a permit, and returns it after the runtime has run other tasks.
    pub async fn pass(self) {
        let _permit = self.enter().await;
        yield_now().await;
    }
}

async fn next(permits: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let permit = Arc::clone(permits).acquire_owned().await;
    permit.expect("nobody closes it")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Log = Arc<Mutex<Vec<&'static str>>>;

    /// Writes a word under each of two permits.
    async fn twice(queue: PeerQueue, word: &'static str, log: Log) {
        for _ in 0..2 {
            let _permit = queue.enter().await;
            log.lock().push(word);
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn peers_alternate_however_many_requests_one_has() {
        let (queue, log) = (FairQueue::of(1), Log::default());
        let tasks = [("p", "a"), ("p", "b"), ("p", "c"), ("q", "x")];
        let tasks =
            tasks.map(|(peer, word)| tokio::spawn(twice(queue.peer(peer), word, Arc::clone(&log))));
        for task in tasks {
            task.await.expect("it gets its permits");
        }
        let log = log.lock().concat();
        assert_eq!(log, "abxcxabc");
        assert_eq!(queue.0.permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn each_peer_has_one_permit_beside_those_of_others() {
        let queue = FairQueue::one_for_each_peer();
        let (p, q) = (queue.peer("p"), queue.peer("q"));
        let (first, other) = (p.enter().await, q.enter().await);
        let second = tokio::spawn(async move { p.enter().await });
        yield_now().await;
        drop(other);
        yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        drop(second.await.expect("it gets its permit"));
        let turns = (0..100).map(|peer| queue.peer(peer).turn.available_permits());
        assert_eq!(turns.sum::<usize>(), 100);
        let known = queue.0.turns.lock().len();
        assert!(known < 10, "peers that are gone take no memory: {known}");
    }

    #[tokio::test]
    async fn so_many_permits_are_held_at_a_time() {
        let peer = FairQueue::of(2).peer("p");
        let (first, _second) = (peer.enter().await, peer.enter().await);
        let third = tokio::spawn(async move { peer.enter().await });
        yield_now().await;
        assert!(!third.is_finished());
        drop(first);
        drop(third.await.expect("it gets its permit"));
    }

    #[tokio::test]
    async fn requests_that_are_given_up_take_no_permit() {
        let queue = FairQueue::of(1);
        let peer = queue.peer("p");
        let first = peer.enter().await;
        for _ in 0..100 {
            let gone = tokio::spawn(peer.clone().pass());
            yield_now().await;
            gone.abort();
            yield_now().await;
        }
        let given = tokio::spawn(peer.clone().pass());
        let last = tokio::spawn(peer.clone().pass());
        yield_now().await;
        drop(first);
        // The task was sent the permit, and does not take it.
        given.abort();
        last.await.expect("it gets its permit");
        assert_eq!(queue.0.permits.available_permits(), 1);
    }
}
