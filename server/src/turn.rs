//! How long a session or a connection works before others have their turn: all of them share the threads.

mod turnstile;

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

pub(crate) use self::turnstile::{Lane, Turnstile};

/// How long a turn of a session lasts.
const SESSION_TURN: Duration = Duration::from_millis(1);
/// How long a turn of a connection lasts: whoever opens many may begin with one on each.
const CONNECTION_TURN: Duration = Duration::from_micros(250);
/// As how much a step of a session counts at most: a part of a frame, or a poll.
const SESSION_STEP_MAX: Duration = Duration::from_micros(500);
/// As how much a step of a connection counts at most: from one read to the next.
const CONNECTION_STEP_MAX: Duration = Duration::from_micros(60);
/// What is left of a turn for whoever comes or comes back, unless many of the same peer wait for theirs: very many that begin at the same
/// moment must not have a whole turn each before the turnstile puts them in a line.
const CREDIT: Duration = Duration::from_micros(250);
/// After so much time without work one has come back, and what was left of the turn is forfeited.
const AWAY: Duration = Duration::from_micros(100);
/// Waiting gives back this part of its time: whoever works for a smaller part of all time never uses up a turn.
const RECOVERY: u32 = 4;
/// How many objects, events or outcomes a part of a frame has at most.
const ITEMS_MAX: usize = 16;

/// The turn of one session. It begins with a credit alone.
#[derive(Debug)]
pub(crate) struct Turn {
    lane: Lane,
    used: Used,
    /// When the part was begun that is being taken.
    part: Instant,
    /// How many items the next part may have.
    items: usize,
}

/// The turn of one connection.
pub(crate) struct ConnectionTurn {
    lane: Lane,
    used: Used,
    /// Whether nothing has come since the last look.
    waits: bool,
    /// The way to the next turn, once this one is used up.
    passing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// How much of a turn is used up.
#[derive(Debug)]
struct Used {
    time: Duration,
    /// How long the turn lasts.
    turn: Duration,
    /// How long a turn lasts where few wait for theirs.
    longest: Duration,
    /// Up to when time has been counted.
    until: Instant,
    /// As how much a step counts at most. What takes longer was interrupted by the system, which is nobody's work.
    step_max: Duration,
}

/// Takes each step of a future in a turn of its own, for those of which strangers may begin many: a handshake signs and verifies.
pub(crate) async fn in_turns<F: Future>(lane: &Lane, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut turn = None;
    poll_fn(|cx| {
        let pass = || Box::pin(lane.clone().pass());
        ready!(turn.get_or_insert_with(pass).as_mut().poll(cx));
        turn = None;
        future.as_mut().poll(cx)
    })
    .await
}

// === impl Turn ===

impl Turn {
    pub(crate) fn begin(lane: Lane) -> Self {
        Self {
            used: Used::begin(SESSION_TURN, SESSION_STEP_MAX, lane.credit(CREDIT)),
            lane,
            part: Instant::now(),
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
        self.items = if self.part.elapsed() < self.used.turn / 2 {
            ITEMS_MAX.min(self.items + 1)
        } else {
            1
        };
        self.used.count(Instant::now())
    }

    /// Does not count time that has just passed without work.
    pub(crate) fn waited(&mut self, time: Duration) {
        let now = Instant::now();
        self.used.count(now - time);
        self.used.wait(now, || self.lane.credit(CREDIT));
    }

    /// Lets others work, if the turn is over.
    pub(crate) async fn give_way(&mut self) {
        if self.used.count(Instant::now()) {
            self.lane.clone().pass().await;
            self.used.renew(self.lane.turn(SESSION_TURN));
        }
    }
}

// === impl ConnectionTurn ===

impl ConnectionTurn {
    pub(crate) fn begin(lane: Lane) -> Self {
        Self {
            used: Used::begin(CONNECTION_TURN, CONNECTION_STEP_MAX, lane.credit(CREDIT)),
            lane,
            waits: false,
            passing: None,
        }
    }

    /// Is ready once the connection may read on. Its next turn is one of `lane`.
    pub(crate) fn poll_go_on(
        &mut self,
        cx: &mut Context<'_>,
        lane: impl FnOnce() -> Lane,
    ) -> Poll<()> {
        let now = Instant::now();
        if std::mem::take(&mut self.waits) {
            self.used.wait(now, || self.lane.credit(CREDIT));
        }
        if self.passing.is_none() && self.used.count(now) {
            self.lane = lane();
            self.passing = Some(Box::pin(self.lane.clone().pass()));
        }
        if let Some(passing) = &mut self.passing {
            ready!(passing.as_mut().poll(cx));
            self.passing = None;
            self.used.renew(self.lane.turn(CONNECTION_TURN));
        }
        Poll::Ready(())
    }

    /// Notes that nothing has come.
    pub(crate) fn wait(&mut self) {
        self.used.count(Instant::now());
        self.waits = true;
    }
}

// === impl Used ===

impl Used {
    fn begin(turn: Duration, step_max: Duration, credit: Duration) -> Self {
        Self {
            time: turn.saturating_sub(credit),
            turn,
            longest: turn,
            until: Instant::now(),
            step_max,
        }
    }

    /// Begins a turn, which lasts so long.
    fn renew(&mut self, turn: Duration) {
        self.turn = turn;
        self.time = Duration::ZERO;
        self.until = Instant::now();
    }

    /// Counts a step that has ended; returns whether the turn is used up.
    fn count(&mut self, now: Instant) -> bool {
        self.time += now.saturating_duration_since(self.until).min(self.step_max);
        self.until = now;
        self.time >= self.turn
    }

    /// Notes that time has passed without work, which gives back a part of it, up to a credit. What that is takes a look at the line, and is
    /// asked only of whoever was away.
    fn wait(&mut self, now: Instant, credit: impl FnOnce() -> Duration) {
        let waited = now.saturating_duration_since(self.until);
        if waited >= AWAY {
            self.time += self.longest.saturating_sub(self.turn);
            self.turn = self.longest;
        }
        self.time = self.time.saturating_sub(waited / RECOVERY);
        if waited >= AWAY {
            // As whoever comes: of what is left of a turn, more is forfeited.
            self.time = self.time.max(self.longest.saturating_sub(credit()));
        }
        self.until = now;
    }
}

#[cfg(test)]
mod tests {
    use super::{turnstile::TURN_MIN, *};

    #[test]
    fn whoever_works_for_a_small_part_of_the_time_never_uses_up_a_turn() {
        let (work, rest) = (Duration::from_micros(50), Duration::from_millis(1));
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX, CREDIT);
        for _ in 0..1_000 {
            let begun = used.until;
            assert!(!used.count(begun + work));
            used.wait(begun + work + rest, || CREDIT);
        }
    }

    #[test]
    fn whoever_comes_or_comes_back_has_no_whole_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX, CREDIT);
        assert!(used.count(used.until + CREDIT), "as it comes");
        used.renew(SESSION_TURN);
        assert!(!used.count(used.until + CREDIT), "of a whole turn");
        used.wait(used.until + Duration::from_secs(1), || CREDIT);
        assert!(used.count(used.until + CREDIT), "as it comes back");
    }

    #[test]
    fn short_turn_leaves_whoever_comes_back_no_less() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX, CREDIT);
        used.renew(TURN_MIN);
        assert!(used.count(used.until + TURN_MIN), "as long as others wait");
        used.wait(used.until + Duration::from_secs(1), || CREDIT);
        assert!(!used.count(used.until + CREDIT / 2));
        assert!(used.count(used.until + CREDIT / 2));
    }

    #[test]
    fn pause_between_two_frames_leaves_the_rest_of_a_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX, CREDIT);
        used.renew(SESSION_TURN);
        used.wait(used.until + AWAY / 2, || CREDIT);
        assert!(!used.count(used.until + CREDIT));
    }

    #[test]
    fn step_that_the_system_interrupts_is_no_whole_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX, CREDIT);
        used.renew(SESSION_TURN);
        let long = used.until + Duration::from_secs(1);
        assert!(!used.count(long));
    }
}
