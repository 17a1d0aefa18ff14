//! How long a session works before others have their turn: all sessions share the threads.

use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// How long a turn lasts.
const TURN: Duration = Duration::from_millis(1);
/// How many objects, events or outcomes a part of a frame has at most.
const ITEMS_MAX: usize = 16;

/// The turn of one session.
#[derive(Debug)]
pub(crate) struct Turn {
    began: Instant,
    /// When the part was begun that is being taken.
    part: Instant,
    /// How many items the next part may have.
    items: usize,
}

// === impl Turn ===

impl Turn {
    pub(crate) fn begin() -> Self {
        let now = Instant::now();
        Self {
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
        self.items = if now - self.part < TURN / 2 {
            ITEMS_MAX.min(self.items + 1)
        } else {
            1
        };
        now - self.began >= TURN
    }

    /// Does not count time that passed without work.
    pub(crate) fn waited(&mut self, time: Duration) {
        self.began += time;
    }

    /// Lets others work, if the turn is over.
    pub(crate) async fn give_way(&mut self) {
        if self.began.elapsed() >= TURN {
            yield_now().await;
            self.began = Instant::now();
        }
    }
}
