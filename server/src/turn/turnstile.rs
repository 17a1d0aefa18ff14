//! Where all that have used up a turn wait for their next.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, Hash, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, task::yield_now};

/// How long a round of all that wait for a turn may take: the more they are, the shorter are their turns.
const ROUND: Duration = Duration::from_millis(4);
/// How long a turn lasts at least: many times as long as it takes to pass it on.
pub(super) const TURN_MIN: Duration = Duration::from_micros(50);

/// Where all that have used up a turn wait for their next: first the peers take turns, and then those of the same peer, in the order in which
/// they come. So whoever opens a hundred sessions has no more of the time than whoever has one.
///
/// However many they are, one of them works between two looks at the sockets, and everything that works little comes first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turnstile(Arc<Shared>);

/// The way through a turnstile of all that is one peer's.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    shared: Arc<Shared>,
    /// A hash of the peer.
    peer: u64,
}

#[derive(Debug, Default)]
struct Shared {
    hasher: RandomState,
    lines: Mutex<Lines>,
    /// How many wait or are about to have their turn.
    length: AtomicU32,
}

/// Who waits, by peer.
#[derive(Debug, Default)]
struct Lines {
    /// Whether somebody is at the turnstile.
    is_taken: bool,
    waiting: HashMap<u64, VecDeque<oneshot::Sender<First>>>,
    /// The peers of which somebody waits, in the order of their turns.
    peers: VecDeque<u64>,
}

/// The first place in the line, until it is dropped; it goes from one to the next.
#[derive(Debug)]
struct First(Option<Arc<Shared>>);

/// A place in the line, until it is dropped.
struct InLine<'a>(&'a Shared);

// === impl Turnstile ===

impl Turnstile {
    /// Returns the way through for what is this peer's.
    pub(crate) fn lane(&self, peer: impl Hash) -> Lane {
        Lane {
            shared: Arc::clone(&self.0),
            peer: self.0.hasher.hash_one(peer),
        }
    }
}

// === impl Lane ===

impl Lane {
    /// Waits for the next turn.
    pub(crate) async fn pass(self) {
        // The runtime looks at the sockets before it comes back here.
        self.during(yield_now()).await;
    }

    /// Waits for the next turn, which lasts until this is done.
    pub(crate) async fn during<T>(self, what: impl Future<Output = T>) -> T {
        let _place = self.shared.enter();
        let _first = self.first().await;
        what.await
    }

    async fn first(&self) -> First {
        let asked = lock(&self.shared.lines).ask(self.peer);
        match asked {
            None => First(Some(Arc::clone(&self.shared))),
            Some(first) => first
                .await
                .expect("whoever is first makes way for the next"),
        }
    }

    /// Returns how long a turn lasts that would last for `longest` if nobody waited for another.
    pub(super) fn turn(&self, longest: Duration) -> Duration {
        share(self.shared.waiting(), longest)
    }

    /// Returns how much of a turn whoever comes has, which would be `longest` if nobody of the same peer waited.
    pub(super) fn credit(&self, longest: Duration) -> Duration {
        if self.shared.waiting() == 0 {
            return longest;
        }
        let lines = lock(&self.shared.lines);
        let waiting = lines.waiting.get(&self.peer).map_or(0, VecDeque::len);
        share(u32::try_from(waiting).unwrap_or(u32::MAX), longest)
    }
}

// === impl Lines ===

impl Lines {
    /// Takes the first place if nobody is there; otherwise returns what brings it.
    fn ask(&mut self, peer: u64) -> Option<oneshot::Receiver<First>> {
        if !std::mem::replace(&mut self.is_taken, true) {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let waiting = self.waiting.entry(peer).or_insert_with(|| {
            self.peers.push_back(peer);
            VecDeque::new()
        });
        // Those that wait for long turns may be given up and made again without end.
        while waiting.front().is_some_and(oneshot::Sender::is_closed) {
            waiting.pop_front();
        }
        waiting.push_back(sender);
        Some(receiver)
    }

    /// Returns who is next, and lets others of the same peer wait until all other peers have had a turn.
    fn next(&mut self) -> Option<oneshot::Sender<First>> {
        let peer = self.peers.pop_front()?;
        let waiting = self.waiting.get_mut(&peer)?;
        let next = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&peer);
        } else {
            self.peers.push_back(peer);
        }
        next
    }
}

// === impl First ===

impl Drop for First {
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        loop {
            let mut lines = lock(&shared.lines);
            let Some(next) = lines.next() else {
                lines.is_taken = false;
                return;
            };
            drop(lines);
            match next.send(Self(Some(Arc::clone(&shared)))) {
                Ok(()) => return,
                // Whoever that was has gone; the next is looked for here.
                Err(mut unsent) => unsent.0 = None,
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    fn waiting(&self) -> u32 {
        self.length.load(Ordering::Relaxed)
    }

    fn enter(&self) -> InLine<'_> {
        self.length.fetch_add(1, Ordering::Relaxed);
        InLine(self)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.length.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns how much of a round one of so many has.
fn share(waiting: u32, longest: Duration) -> Duration {
    (ROUND / waiting.max(1)).max(TURN_MIN).min(longest)
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// Writes a word each time that it comes through.
    fn busy(
        runtime: &Runtime,
        lane: &Lane,
        word: &'static str,
        log: &Arc<Mutex<Vec<&'static str>>>,
    ) {
        let (lane, log) = (lane.clone(), Arc::clone(log));
        runtime.spawn(async move {
            for _ in 0..2 {
                lane.clone().pass().await;
                log.lock().expect("nobody panics").push(word);
            }
        });
    }

    fn lock_log<'a>(log: &'a Mutex<Vec<&'static str>>) -> MutexGuard<'a, Vec<&'static str>> {
        log.lock().expect("nobody panics")
    }

    /// Returns the words that the tasks of these peers write.
    fn words(tasks: &[(&str, &'static str)]) -> String {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (turnstile, log) = (Turnstile::default(), Arc::new(Mutex::new(Vec::new())));
        for (peer, word) in tasks {
            busy(&runtime, &turnstile.lane(peer), word, &log);
        }
        let light = Arc::clone(&log);
        runtime.block_on(async {
            while {
                light.lock().expect("nobody panics").push("-");
                yield_now().await;
                turnstile.0.waiting() > 0
            } {}
        });
        let log = log.lock().expect("nobody panics");
        log.concat()
    }

    #[test]
    fn those_with_much_to_do_have_their_turns_one_after_the_other_and_others_come_between() {
        let log = words(&[("p", "a"), ("p", "b"), ("p", "c")]);
        let order: String = log.chars().filter(|word| *word != '-').collect();
        assert_eq!(order, "abcabc", "{log}");
        let mut busy = log.split('-').map(str::len);
        assert!(busy.all(|in_a_row| in_a_row <= 2), "{log}");
    }

    #[test]
    fn each_peer_has_a_turn_however_many_another_has_in_the_line() {
        let log = words(&[("p", "a"), ("p", "b"), ("p", "c"), ("q", "x")]);
        let order: String = log.chars().filter(|word| *word != '-').collect();
        // Who is next is known before a turn ends, so "x" asks again just after "c" or "a" was chosen.
        assert_eq!(order, "abxcaxbc", "{log}");
    }

    #[test]
    fn whoever_goes_leaves_the_turn_to_the_next() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (turnstile, log) = (Turnstile::default(), Arc::new(Mutex::new(Vec::new())));
        runtime.block_on(async {
            let lane = turnstile.lane("p");
            let first = lane.first().await;
            let mut gone: Vec<_> = (0..3).map(|_| tokio::spawn(lane.clone().pass())).collect();
            yield_now().await;
            let last = gone.pop().expect("there are three");
            gone[0].abort();
            yield_now().await;
            drop(first);
            // This one has been given the first place, and does not take it.
            gone[1].abort();
            last.await.expect("it has its turn");
            busy(&runtime, &lane, "-", &log);
        });
        let lines = lock(&turnstile.0.lines);
        assert!(lines.waiting.is_empty() && lines.peers.is_empty());
    }

    #[test]
    fn peer_with_one_in_the_line_waits_for_one_turn_of_another() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (turnstile, log) = (Turnstile::default(), Arc::new(Mutex::new(Vec::new())));
        runtime.block_on(async {
            let (end, ended) = oneshot::channel::<()>();
            let long = tokio::spawn(turnstile.lane("p").during(ended));
            yield_now().await;
            let enter = |peer: &'static str| {
                let (lane, log) = (turnstile.lane(peer), Arc::clone(&log));
                let word = async move { lock_log(&log).push(peer) };
                tokio::spawn(lane.during(word))
            };
            let mut all: Vec<_> = (0..3).map(|_| enter("p")).collect();
            yield_now().await;
            all.push(enter("q"));
            yield_now().await;
            assert!(lock_log(&log).is_empty(), "a turn lasts until it is done");
            drop(end);
            let _: Result<(), _> = long.await.expect("it does not panic");
            for task in all {
                task.await.expect("it has its turn");
            }
        });
        assert_eq!(lock_log(&log).concat(), "pqpp");
    }

    #[test]
    fn those_that_have_gone_take_no_room_in_the_line() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let turnstile = Turnstile::default();
        runtime.block_on(async {
            let lane = turnstile.lane("p");
            let first = lane.first().await;
            for _ in 0..100 {
                let gone = tokio::spawn(lane.clone().pass());
                yield_now().await;
                gone.abort();
                yield_now().await;
            }
            let waiting = |lines: &Lines| lines.waiting.values().map(VecDeque::len).sum::<usize>();
            assert_eq!(waiting(&lock(&turnstile.0.lines)), 1);
            drop(first);
            lane.pass().await;
        });
    }

    #[test]
    fn turns_are_the_shorter_the_more_wait() {
        let lane = Turnstile::default().lane("p");
        let turns = [0, 1, 4, 16, 1_000].map(|waiting| {
            let _places: Vec<_> = (0..waiting).map(|_| lane.shared.enter()).collect();
            lane.turn(Duration::from_millis(1)).as_micros()
        });
        assert_eq!(turns, [1_000, 1_000, 1_000, 250, 50]);
        assert_eq!(lane.turn(TURN_MIN * 2), TURN_MIN * 2);
    }

    #[test]
    fn credit_is_the_smaller_the_more_of_the_same_peer_wait() {
        let turnstile = Turnstile::default();
        let (many, other) = (turnstile.lane("p"), turnstile.lane("q"));
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let longest = Duration::from_micros(250);
        runtime.block_on(async {
            let first = many.first().await;
            let waiting: Vec<_> = (0..40).map(|_| tokio::spawn(many.clone().pass())).collect();
            yield_now().await;
            assert_eq!(many.credit(longest), Duration::from_micros(100));
            assert_eq!(other.credit(longest), longest);
            drop(first);
            for task in waiting {
                task.await.expect("it has its turn");
            }
            assert_eq!(many.credit(longest), longest);
        });
    }
}
