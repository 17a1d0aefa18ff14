//! Prevents a busy peer from taking all threads. Its steps run one at a time once it has used more than a small part of the time. Large
//! steps run on a separate thread. The kernel divides the processors between peers.

use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{block_in_place, yield_now},
};

use crate::fair_queue::{PeerQueue, Permit};

/// How long a session keeps a permit while it has steps to run. Handing a permit over takes much less time.
const SLICE: Duration = Duration::from_millis(1);
/// The recent work that makes a session or a connection busy. A peer can do this much on each one that it opens.
const BUSY: Duration = Duration::from_micros(250);
/// The maximum of the recent work, so that a session is not busy for long after a long step.
const USED_MAX: Duration = Duration::from_millis(1);
/// The maximum time counted for one step of a session. If a step takes longer, the kernel was running something else.
const SESSION_STEP_MAX: Duration = Duration::from_micros(500);
/// The maximum time counted for one step of a connection, from one read to the next.
const CONNECTION_STEP_MAX: Duration = Duration::from_micros(60);
/// One part in this many of the time at rest is credited, so a session that works less than that is never busy.
const RECOVERY: u32 = 4;

/// Paces one session.
#[derive(Debug)]
pub struct SessionPacer {
    queue: PeerQueue,
    usage: Usage,
    /// The permit of the peer, and when it goes to the next session.
    permit: Option<(Permit, Instant)>,
}

/// Paces one connection.
pub struct ConnectionPacer {
    usage: Usage,
    rests: bool,
    /// The permit that a busy connection waits for.
    passing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// The recent work of a session or a connection.
#[derive(Debug)]
struct Usage {
    time: Duration,
    /// The end of the time that is already counted.
    until: Instant,
}

/// Runs each step of a future under a permit. For handshakes, of which an unauthenticated client can begin many.
pub async fn paced<F: Future>(queue: &PeerQueue, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut passing = None;
    poll_fn(|cx| {
        let pass = || Box::pin(queue.clone().pass());
        ready!(passing.get_or_insert_with(pass).as_mut().poll(cx));
        passing = None;
        future.as_mut().poll(cx)
    })
    .await
}

// === impl SessionPacer ===

impl SessionPacer {
    /// `queue` supplies the permits of the session.
    pub fn new(queue: PeerQueue) -> Self {
        Self {
            queue,
            usage: Usage::new(),
            permit: None,
        }
    }

    /// Runs a step. A large step, and any step of a busy session, waits for a permit. During a large step, the other tasks of its thread move
    /// to another thread.
    pub async fn step<T>(&mut self, is_large: bool, step: impl FnOnce() -> T) -> T {
        if self.permit.is_none() && (is_large || self.usage.is_busy()) {
            let permit = self.queue.enter().await;
            let now = Instant::now();
            self.permit = Some((permit, now + SLICE));
            // A session that waits for its permit does not rest.
            self.usage.until = now;
        }
        let result = if is_large { in_place(step) } else { step() };
        let now = Instant::now();
        self.usage.work(now, SESSION_STEP_MAX);
        if self.permit.take_if(|(_, end)| *end <= now).is_some() {
            yield_now().await;
        }
        result
    }

    /// Waits for an external event. Meanwhile the session rests, and its permit is free for another session.
    pub async fn wait<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut rests = false;
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() && !rests {
                self.usage.work(Instant::now(), SESSION_STEP_MAX);
                self.permit = None;
                rests = true;
            } else if polled.is_ready() && rests {
                self.usage.rest(Instant::now());
            }
            polled
        })
        .await
    }
}

fn in_place<T>(step: impl FnOnce() -> T) -> T {
    if Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread {
        block_in_place(step)
    } else {
        step()
    }
}

// === impl ConnectionPacer ===

impl ConnectionPacer {
    /// Starts to pace a new connection.
    pub fn start() -> Self {
        Self {
            usage: Usage::new(),
            rests: false,
            passing: None,
        }
    }

    /// Ready when the connection may read. A busy connection waits for a permit of `queue` first.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        queue: impl FnOnce() -> PeerQueue,
    ) -> Poll<()> {
        let now = Instant::now();
        if std::mem::take(&mut self.rests) {
            self.usage.rest(now)
        } else {
            self.usage.work(now, CONNECTION_STEP_MAX)
        }
        if self.passing.is_none() && self.usage.is_busy() {
            self.passing = Some(Box::pin(queue().pass()));
        }
        if let Some(passing) = &mut self.passing {
            ready!(passing.as_mut().poll(cx));
            self.passing = None;
            self.usage = Usage::new();
        }
        Poll::Ready(())
    }

    /// Notes that a read found no bytes.
    pub fn rest(&mut self) {
        self.usage.work(Instant::now(), CONNECTION_STEP_MAX);
        self.rests = true;
    }
}

// === impl Usage ===

impl Usage {
    fn new() -> Self {
        Self {
            time: Duration::ZERO,
            until: Instant::now(),
        }
    }

    fn is_busy(&self) -> bool {
        self.time >= BUSY
    }

    /// Counts the time since the last call as a step, up to `step_max`.
    fn work(&mut self, now: Instant, step_max: Duration) {
        let step = now.saturating_duration_since(self.until).min(step_max);
        self.time = USED_MAX.min(self.time + step);
        self.until = now;
    }

    fn rest(&mut self, now: Instant) {
        let rested = now.saturating_duration_since(self.until);
        self.time = self.time.saturating_sub(rested / RECOVERY);
        self.until = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair_queue::FairQueue;

    #[test]
    fn session_that_works_all_the_time_is_busy_and_one_that_rests_is_not() {
        let millisecond = Duration::from_millis(1);
        let mut usage = Usage::new();
        let mut works_and_rests = |work: Duration, rest: Duration| {
            usage.work(usage.until + work, SESSION_STEP_MAX);
            let was_busy = usage.is_busy();
            usage.rest(usage.until + rest);
            was_busy
        };
        for _ in 0..1_000 {
            assert!(!works_and_rests(Duration::from_micros(50), millisecond));
        }
        for _ in 0..100 {
            works_and_rests(millisecond, Duration::ZERO);
        }
        assert!(works_and_rests(millisecond, USED_MAX * RECOVERY));
        assert!(
            !works_and_rests(Duration::ZERO, Duration::ZERO),
            "it recovers"
        );
    }

    #[test]
    fn step_that_the_kernel_interrupts_counts_as_a_short_one() {
        let mut usage = Usage::new();
        usage.work(usage.until + Duration::from_secs(1), CONNECTION_STEP_MAX);
        assert!(!usage.is_busy());
    }

    #[tokio::test]
    async fn busy_session_gives_its_permit_back_after_a_slice_and_when_it_waits() {
        let queue = FairQueue::one_for_each_peer();
        let mut pacer = SessionPacer::new(queue.peer("p"));
        pacer.usage.time = USED_MAX;
        pacer.step(false, || ()).await;
        let (permit, _) = pacer.permit.take().expect("its slice is not over");
        pacer.permit = Some((permit, pacer.usage.until));
        pacer.step(false, || ()).await;
        assert!(pacer.permit.is_none());
        pacer.step(true, || ()).await;
        let never = pacer.wait(std::future::pending::<()>());
        let other = queue.peer("p").pass();
        tokio::select! {
            biased;
            () = never => panic!("nothing comes"),
            () = other => {}
        }
    }

    #[tokio::test]
    async fn large_steps_of_a_peer_run_one_at_a_time() {
        let queue = FairQueue::one_for_each_peer();
        let mut pacer = SessionPacer::new(queue.peer("p"));
        let permit = queue.peer("p").enter().await;
        let step = tokio::spawn(async move { pacer.step(true, || 7).await });
        yield_now().await;
        assert!(!step.is_finished());
        drop(permit);
        assert_eq!(step.await.expect("it does not panic"), 7);
    }
}
