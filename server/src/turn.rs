//! How long a session or a connection works before others have their turn: all of them share the threads.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, task::yield_now};

/// How long a turn of a session lasts.
const SESSION_TURN: Duration = Duration::from_millis(1);
/// How long a turn of a connection lasts: whoever opens many may begin with one on each.
const CONNECTION_TURN: Duration = Duration::from_micros(250);
/// Waiting gives back this part of its time: whoever works for a smaller part of all time never uses up a turn.
const RECOVERY: u32 = 4;
/// How many objects, events or outcomes a part of a frame has at most.
const ITEMS_MAX: usize = 16;

/// Where all that have used up a turn wait for their next, in the order in which they come.
///
/// However many they are, one of them works between two looks at the sockets, and everything that works little comes first.
#[derive(Clone, Debug)]
pub(crate) struct Turnstile(Arc<Semaphore>);

/// The turn of one session.
#[derive(Debug)]
pub(crate) struct Turn {
    turnstile: Turnstile,
    began: Instant,
    /// When the part was begun that is being taken.
    part: Instant,
    /// How many items the next part may have.
    items: usize,
}

/// The turn of one connection.
pub(crate) struct ConnectionTurn {
    turnstile: Turnstile,
    began: Instant,
    /// Since when nothing has come.
    waits: Option<Instant>,
    /// The way to the next turn, once this one is used up.
    passing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

// === impl Turnstile ===

impl Default for Turnstile {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Turnstile {
    /// Waits for the next turn.
    pub(crate) async fn pass(self) {
        // It is never closed.
        let _first = self.0.acquire().await;
        // The runtime looks at the sockets before it comes back here.
        yield_now().await;
    }
}

// === impl Turn ===

impl Turn {
    pub(crate) fn begin(turnstile: Turnstile) -> Self {
        let now = Instant::now();
        Self {
            turnstile,
            began: now,
            part: now,
            items: 1,
        }
    }

    /// Begins a part: returns how many items it may have. After a part that took long it is one, and then more and more.
    pub(crate) fn items(&mut self) -> usize {
        self.part = Instant::now();
        self.items
    }

    /// Ends a part: returns whether the turn is over.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        self.items = if now - self.part < SESSION_TURN / 2 {
            ITEMS_MAX.min(self.items + 1)
        } else {
            1
        };
        now - self.began >= SESSION_TURN
    }

    /// Does not count time that passed without work.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.began = recovered(self.began, time);
    }

    /// Lets others work, if the turn is over.
    pub(crate) async fn give_way(&mut self) {
        if self.began.elapsed() >= SESSION_TURN {
            self.turnstile.clone().pass().await;
            self.began = Instant::now();
        }
    }
}

// === impl ConnectionTurn ===

impl ConnectionTurn {
    pub(crate) fn begin(turnstile: Turnstile) -> Self {
        Self {
            turnstile,
            began: Instant::now(),
            waits: None,
            passing: None,
        }
    }

    /// Is ready once the connection may read on.
    pub(crate) fn poll_go_on(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(since) = self.waits.take() {
            self.began = recovered(self.began, since.elapsed());
        }
        if self.passing.is_none() && self.began.elapsed() >= CONNECTION_TURN {
            self.passing = Some(Box::pin(self.turnstile.clone().pass()));
        }
        if let Some(passing) = &mut self.passing {
            ready!(passing.as_mut().poll(cx));
            self.passing = None;
            self.began = Instant::now();
        }
        Poll::Ready(())
    }

    /// Notes that nothing has come.
    pub(crate) fn wait(&mut self) {
        self.waits = Some(Instant::now());
    }
}

/// Returns when a turn began for those who count work alone, after a wait.
fn recovered(began: Instant, waited: Duration) -> Instant {
    Instant::now().min(began + waited + waited / RECOVERY)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn those_with_much_to_do_have_their_turns_one_after_the_other_and_others_come_between() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let (turnstile, log) = (Turnstile::default(), Arc::new(Mutex::new(Vec::new())));
        let write = |word| {
            let log = Arc::clone(&log);
            move || log.lock().expect("nobody panics").push(word)
        };
        runtime.block_on(async {
            let busy = ["a", "b", "c"].map(|word| {
                let (turnstile, write) = (turnstile.clone(), write(word));
                tokio::spawn(async move {
                    for _ in 0..2 {
                        turnstile.clone().pass().await;
                        write();
                    }
                })
            });
            let light = write("-");
            let light = tokio::spawn(async move {
                for _ in 0..6 {
                    light();
                    yield_now().await;
                }
            });
            for task in busy {
                task.await.expect("it does not panic");
            }
            light.await.expect("it does not panic");
        });
        let log = log.lock().expect("nobody panics").concat();
        let order: String = log.chars().filter(|word| *word != '-').collect();
        assert_eq!(order, "abcabc", "{log}");
        let mut busy = log.split('-').map(str::len);
        assert!(busy.all(|in_a_row| in_a_row <= 2), "{log}");
    }

    #[test]
    fn whoever_works_for_a_small_part_of_the_time_never_uses_up_a_turn() {
        let now = Instant::now();
        let began = now - Duration::from_millis(3);
        let waited = Duration::from_millis(2);
        let left = recovered(began, waited) - began;
        assert_eq!(left, waited + waited / RECOVERY);
        assert!(recovered(began, Duration::from_secs(1)) >= now);
    }
}
