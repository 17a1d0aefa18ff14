//! How long a session or a connection works before others have their turn: all of them share the threads.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{sync::Semaphore, task::yield_now};

/// How long a turn of a session lasts.
const SESSION_TURN: Duration = Duration::from_millis(1);
/// How long a turn of a connection lasts: whoever opens many may begin with one on each.
const CONNECTION_TURN: Duration = Duration::from_micros(250);
/// How long a round of all that wait for a turn may take: the more they are, the shorter are their turns.
const ROUND: Duration = Duration::from_millis(4);
/// How long a turn lasts at least: many times as long as it takes to pass it on.
const TURN_MIN: Duration = Duration::from_micros(50);
/// As how much a step of a session counts at most: a part of a frame, or a poll.
const SESSION_STEP_MAX: Duration = Duration::from_micros(500);
/// As how much a step of a connection counts at most: from one read to the next.
const CONNECTION_STEP_MAX: Duration = Duration::from_micros(60);
/// What is left of a turn for whoever comes or comes back: very many that begin at the same moment must not have a whole turn each before
/// the turnstile puts them in a line.
const CREDIT: Duration = Duration::from_micros(250);
/// After so much time without work one has come back, and what was left of the turn is forfeited.
const AWAY: Duration = Duration::from_micros(100);
/// Waiting gives back this part of its time: whoever works for a smaller part of all time never uses up a turn.
const RECOVERY: u32 = 4;
/// How many objects, events or outcomes a part of a frame has at most.
const ITEMS_MAX: usize = 16;

/// Where all that have used up a turn wait for their next, in the order in which they come.
///
/// However many they are, one of them works between two looks at the sockets, and everything that works little comes first.
#[derive(Clone, Debug)]
pub(crate) struct Turnstile(Arc<Line>);

#[derive(Debug)]
struct Line {
    first: Semaphore,
    /// How many are in the line.
    length: AtomicU32,
}

/// A place in the line, until it is dropped.
struct InLine<'a>(&'a Line);

/// The turn of one session. It begins with [`CREDIT`] alone.
#[derive(Debug)]
pub(crate) struct Turn {
    turnstile: Turnstile,
    used: Used,
    /// When the part was begun that is being taken.
    part: Instant,
    /// How many items the next part may have.
    items: usize,
}

/// The turn of one connection.
pub(crate) struct ConnectionTurn {
    turnstile: Turnstile,
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
    /// As how much a step counts at most. What takes longer was interrupted by the system, which is nobody's fault.
    step_max: Duration,
}

// === impl Turnstile ===

impl Default for Turnstile {
    fn default() -> Self {
        Self(Arc::new(Line {
            first: Semaphore::new(1),
            length: AtomicU32::new(0),
        }))
    }
}

impl Turnstile {
    /// Waits for the next turn.
    pub(crate) async fn pass(self) {
        let _place = self.0.enter();
        // It is never closed.
        let _first = self.0.first.acquire().await;
        // The runtime looks at the sockets before it comes back here.
        yield_now().await;
    }

    /// Returns how long a turn lasts that would last for `longest` if nobody waited for another.
    fn turn(&self, longest: Duration) -> Duration {
        let waiting = self.0.length.load(Ordering::Relaxed).max(1);
        (ROUND / waiting).max(TURN_MIN).min(longest)
    }
}

// === impl Line ===

impl Line {
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

/// Takes each step of a future in a turn of its own, for those of which strangers may begin many: a handshake signs and verifies.
pub(crate) async fn in_turns<F: Future>(turnstile: &Turnstile, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut turn = None;
    poll_fn(|cx| {
        let pass = || Box::pin(turnstile.clone().pass());
        ready!(turn.get_or_insert_with(pass).as_mut().poll(cx));
        turn = None;
        future.as_mut().poll(cx)
    })
    .await
}

// === impl Turn ===

impl Turn {
    pub(crate) fn begin(turnstile: Turnstile) -> Self {
        Self {
            turnstile,
            used: Used::begin(SESSION_TURN, SESSION_STEP_MAX),
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
        self.used.wait(now);
    }

    /// Lets others work, if the turn is over.
    pub(crate) async fn give_way(&mut self) {
        if self.used.count(Instant::now()) {
            self.turnstile.clone().pass().await;
            self.used.renew(self.turnstile.turn(SESSION_TURN));
        }
    }
}

// === impl ConnectionTurn ===

impl ConnectionTurn {
    pub(crate) fn begin(turnstile: Turnstile) -> Self {
        Self {
            turnstile,
            used: Used::begin(CONNECTION_TURN, CONNECTION_STEP_MAX),
            waits: false,
            passing: None,
        }
    }

    /// Is ready once the connection may read on.
    pub(crate) fn poll_go_on(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        if std::mem::take(&mut self.waits) {
            self.used.wait(now);
        }
        if self.passing.is_none() && self.used.count(now) {
            self.passing = Some(Box::pin(self.turnstile.clone().pass()));
        }
        if let Some(passing) = &mut self.passing {
            ready!(passing.as_mut().poll(cx));
            self.passing = None;
            self.used.renew(self.turnstile.turn(CONNECTION_TURN));
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
    fn begin(turn: Duration, step_max: Duration) -> Self {
        Self {
            time: turn.saturating_sub(CREDIT),
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

    /// Notes that time has passed without work, which gives back a part of it, up to [`CREDIT`].
    fn wait(&mut self, now: Instant) {
        let waited = now.saturating_duration_since(self.until);
        if waited >= AWAY {
            self.time += self.longest.saturating_sub(self.turn);
            self.turn = self.longest;
        }
        self.time = self.time.saturating_sub(waited / RECOVERY);
        if waited >= AWAY {
            // As whoever comes: of what is left of a turn, more is forfeited.
            self.time = self.time.max(self.longest.saturating_sub(CREDIT));
        }
        self.until = now;
    }
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
        let (work, rest) = (Duration::from_micros(50), Duration::from_millis(1));
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX);
        for _ in 0..1_000 {
            let begun = used.until;
            assert!(!used.count(begun + work));
            used.wait(begun + work + rest);
        }
    }

    #[test]
    fn whoever_comes_or_comes_back_has_no_whole_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX);
        assert!(used.count(used.until + CREDIT), "as it comes");
        used.renew(SESSION_TURN);
        assert!(!used.count(used.until + CREDIT), "of a whole turn");
        used.wait(used.until + Duration::from_secs(1));
        assert!(used.count(used.until + CREDIT), "as it comes back");
    }

    #[test]
    fn turns_are_the_shorter_the_more_wait() {
        let turnstile = Turnstile::default();
        let turns = [0, 1, 4, 16, 1_000].map(|waiting| {
            let _places: Vec<_> = (0..waiting).map(|_| turnstile.0.enter()).collect();
            turnstile.turn(SESSION_TURN).as_micros()
        });
        assert_eq!(turns, [1_000, 1_000, 1_000, 250, 50]);
        assert_eq!(turnstile.turn(CONNECTION_TURN), CONNECTION_TURN);
    }

    #[test]
    fn short_turn_leaves_whoever_comes_back_no_less() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX);
        used.renew(TURN_MIN);
        assert!(used.count(used.until + TURN_MIN), "as long as others wait");
        used.wait(used.until + Duration::from_secs(1));
        assert!(!used.count(used.until + CREDIT / 2));
        assert!(used.count(used.until + CREDIT / 2));
    }

    #[test]
    fn pause_between_two_frames_leaves_the_rest_of_a_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX);
        used.renew(SESSION_TURN);
        used.wait(used.until + AWAY / 2);
        assert!(!used.count(used.until + CREDIT));
    }

    #[test]
    fn step_that_the_system_interrupts_is_no_whole_turn() {
        let mut used = Used::begin(SESSION_TURN, SESSION_STEP_MAX);
        used.renew(SESSION_TURN);
        let long = used.until + Duration::from_secs(1);
        assert!(!used.count(long));
    }
}
