//! A queue of permits that is fair between peers: the peers alternate, however many requests each has in the queue.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task::yield_now};

/// A queue of permits. Clones are the same queue.
#[derive(Clone, Debug)]
pub struct FairQueue(Arc<QueueState>);

/// The requests of one peer in a queue.
#[derive(Clone, Debug)]
pub struct PeerQueue {
    queue: Arc<QueueState>,
    /// A hash of the peer.
    peer: u64,
}

/// A permit, returned on drop.
#[derive(Debug)]
pub struct Permit(Option<PeerQueue>);

#[derive(Debug)]
struct QueueState {
    hasher: RandomState,
    permits_max: usize,
    permits_of_a_peer_max: usize,
    requests: Mutex<Requests>,
}

/// The permits in use, and the waiting requests.
#[derive(Debug, Default)]
struct Requests {
    held: usize,
    by_peer: HashMap<u64, PeerRequests>,
    /// The peers with a waiting request, in the order in which they are served.
    order: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct PeerRequests {
    held: usize,
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

// === impl FairQueue ===

impl FairQueue {
    /// A queue with this many permits.
    pub fn of(permits_max: usize) -> Self {
        Self::new(permits_max, usize::MAX)
    }

    /// A queue with one permit for each peer.
    pub fn one_for_each_peer() -> Self {
        Self::new(usize::MAX, 1)
    }

    fn new(permits_max: usize, permits_of_a_peer_max: usize) -> Self {
        Self(Arc::new(QueueState {
            hasher: RandomState::default(),
            permits_max,
            permits_of_a_peer_max,
            requests: Mutex::default(),
        }))
    }

    /// The queue of a peer.
    pub fn peer(&self, peer: impl Hash) -> PeerQueue {
        PeerQueue {
            queue: Arc::clone(&self.0),
            peer: self.0.hasher.hash_one(peer),
        }
    }
}

// === impl PeerQueue ===

impl PeerQueue {
    /// Waits for a permit.
    pub async fn enter(&self) -> Permit {
        let request = self.queue.lock().ask(&self.queue, self.peer);
        match request {
            None => Permit(Some(self.clone())),
            Some(permit) => permit.await.expect("each permit is passed on"),
        }
    }

    /// Waits for a permit, and returns it after the runtime has run other tasks.
    pub async fn pass(self) {
        let _permit = self.enter().await;
        yield_now().await;
    }
}

// === impl QueueState ===

impl QueueState {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Requests ===

impl Requests {
    /// Takes a permit if one is free. Otherwise returns the receiver of the permit.
    fn ask(&mut self, limits: &QueueState, peer: u64) -> Option<oneshot::Receiver<Permit>> {
        let of_peer = self.by_peer.entry(peer).or_default();
        // Abandoned requests must not accumulate while other requests hold permits for long.
        let is_given_up = |sender: &oneshot::Sender<_>| sender.is_closed();
        while of_peer.waiting.front().is_some_and(is_given_up) {
            of_peer.waiting.pop_front();
        }
        if self.held < limits.permits_max && of_peer.held < limits.permits_of_a_peer_max {
            self.held += 1;
            of_peer.held += 1;
            return None;
        }
        if !self.order.contains(&peer) {
            self.order.push_back(peer);
        }
        let (sender, receiver) = oneshot::channel();
        of_peer.waiting.push_back(sender);
        Some(receiver)
    }

    fn release(&mut self, peer: u64) {
        self.held -= 1;
        if let Some(of_peer) = self.by_peer.get_mut(&peer) {
            of_peer.held -= 1;
            if of_peer.held == 0 && of_peer.waiting.is_empty() {
                self.by_peer.remove(&peer);
            }
        }
    }

    /// Takes a permit for the next request, if any. A peer with further requests goes to the end of the order.
    fn next(&mut self, limits: &QueueState) -> Option<(u64, oneshot::Sender<Permit>)> {
        for _ in 0..self.order.len() {
            let peer = self.order.pop_front()?;
            let Some(of_peer) = self.by_peer.get_mut(&peer) else {
                continue;
            };
            if self.held >= limits.permits_max || of_peer.held >= limits.permits_of_a_peer_max {
                self.order.push_back(peer);
                continue;
            }
            let next = of_peer.waiting.pop_front();
            if !of_peer.waiting.is_empty() {
                self.order.push_back(peer);
            }
            if let Some(next) = next {
                self.held += 1;
                of_peer.held += 1;
                return Some((peer, next));
            }
        }
        None
    }
}

// === impl Permit ===

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(PeerQueue { queue, peer }) = self.0.take() else {
            return;
        };
        let mut requests = queue.lock();
        requests.release(peer);
        while let Some((peer, next)) = requests.next(&queue) {
            let queue = Arc::clone(&queue);
            if let Err(mut unsent) = next.send(Self(Some(PeerQueue { queue, peer }))) {
                // The request was abandoned.
                unsent.0 = None;
                requests.release(peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    type Log = Arc<Mutex<Vec<&'static str>>>;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().expect("a runtime")
    }

    /// Writes a word under each of two permits.
    async fn twice(queue: PeerQueue, word: &'static str, log: Log) {
        for _ in 0..2 {
            let _permit = queue.enter().await;
            log.lock().expect("nobody panics").push(word);
            yield_now().await;
        }
    }

    #[test]
    fn peers_alternate_however_many_requests_one_has() {
        let (queue, log) = (FairQueue::of(1), Log::default());
        runtime().block_on(async {
            let tasks = [("p", "a"), ("p", "b"), ("p", "c"), ("q", "x")];
            let tasks = tasks
                .map(|(peer, word)| tokio::spawn(twice(queue.peer(peer), word, Arc::clone(&log))));
            for task in tasks {
                task.await.expect("it gets its permits");
            }
        });
        let log = log.lock().expect("nobody panics").concat();
        // The next request is chosen before "x" asks again.
        assert_eq!(log, "abxcaxbc");
        let requests = queue.0.lock();
        assert!(requests.by_peer.is_empty() && requests.held == 0);
    }

    #[test]
    fn each_peer_has_one_permit_beside_those_of_others() {
        let queue = FairQueue::one_for_each_peer();
        let (p, q) = (queue.peer("p"), queue.peer("q"));
        runtime().block_on(async {
            let (first, other) = (p.enter().await, q.enter().await);
            let second = tokio::spawn(async move { p.enter().await });
            yield_now().await;
            drop(other);
            yield_now().await;
            assert!(!second.is_finished());
            drop(first);
            drop(second.await.expect("it gets its permit"));
        });
        assert!(queue.0.lock().by_peer.is_empty());
    }

    #[test]
    fn so_many_permits_are_held_at_a_time() {
        let peer = FairQueue::of(2).peer("p");
        runtime().block_on(async {
            let (first, second) = (peer.enter().await, peer.enter().await);
            let third = tokio::spawn(async move { peer.enter().await });
            yield_now().await;
            assert!(!third.is_finished());
            drop(first);
            drop(third.await.expect("it gets its permit"));
            drop(second);
        });
    }

    #[test]
    fn requests_that_are_given_up_take_no_room_and_no_permit() {
        let queue = FairQueue::of(1);
        runtime().block_on(async {
            let peer = queue.peer("p");
            let first = peer.enter().await;
            for _ in 0..100 {
                let gone = tokio::spawn(peer.clone().pass());
                yield_now().await;
                gone.abort();
                yield_now().await;
            }
            let waiting: usize = queue
                .0
                .lock()
                .by_peer
                .values()
                .map(|it| it.waiting.len())
                .sum();
            assert_eq!(waiting, 1);
            let given = tokio::spawn(peer.clone().pass());
            let last = tokio::spawn(peer.clone().pass());
            yield_now().await;
            drop(first);
            // The task was sent the permit, and does not take it.
            given.abort();
            last.await.expect("it gets its permit");
        });
        let requests = queue.0.lock();
        assert!(requests.by_peer.is_empty() && requests.order.is_empty());
    }
}
