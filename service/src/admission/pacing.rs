//! Prevents a busy peer from taking all threads. The steps of its sessions run one at a time, and a busy connection waits for a turn among
//! them. Large steps run on a separate thread. The kernel divides the processors between peers.

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
use tokio_util::task::AbortOnDropHandle;

use crate::admission::fair_queue::{PeerQueue, Permit};

/// How long a session keeps a permit while it has steps to run. Handing a permit over takes much less time.
const SLICE: Duration = Duration::from_millis(1);
/// The work after which a connection is busy.
const BUSY: Duration = Duration::from_micros(250);
/// One part in this many of the time at rest is credited, so a connection that works less than that is never busy.
const RECOVERY: u32 = 4;
/// The maximum time counted for one step of a connection, from one read to the next. If a step takes longer, the kernel was running
/// something else.
const STEP_MAX: Duration = Duration::from_micros(60);

/// Paces one session.
#[derive(Debug)]
pub struct SessionPacer {
    queue: PeerQueue,
    /// The permit of the peer, and when it goes to the next session.
    permit: Option<(Permit, Instant)>,
}

/// Paces one connection.
pub struct ConnectionPacer {
    /// The recent work.
    used: Duration,
    /// The end of the time that is already counted.
    until: Instant,
    rests: bool,
    /// A task that waits for a permit of the busy connection. hyper does not poll the read of a connection whose writes are stuck, which
    /// would keep the permit from the sessions of its peer.
    passing: Option<AbortOnDropHandle<()>>,
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

impl SessionPacer {
    /// `queue` supplies the permits of the session.
    pub const fn new(queue: PeerQueue) -> Self {
        Self {
            queue,
            permit: None,
        }
    }

    /// Waits until the next step can run.
    pub async fn turn(&mut self) {
        if self.permit.is_none() {
            let permit = self.queue.enter().await;
            self.permit = Some((permit, Instant::now() + SLICE));
        }
    }

    /// Runs a step after its [`turn`](Self::turn). During a large step, the other tasks of its thread move to another thread.
    pub async fn step<T>(&mut self, is_large: bool, step: impl FnOnce() -> T) -> T {
        self.turn().await;
        let result = if is_large { in_place(step) } else { step() };
        let is_over = |(_, end): &mut (Permit, Instant)| *end <= Instant::now();
        if self.permit.take_if(is_over).is_some() {
            yield_now().await;
        }
        result
    }

    /// Waits for an external event. Meanwhile the permit is free for another session.
    pub async fn wait<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                self.permit = None;
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

impl ConnectionPacer {
    /// Starts to pace a new connection.
    pub fn start() -> Self {
        Self {
            used: Duration::ZERO,
            until: Instant::now(),
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
        if std::mem::take(&mut self.rests) {
            let rested = self.count() / RECOVERY;
            self.used = self.used.saturating_sub(rested);
        } else {
            self.work();
        }
        if self.passing.is_none() && self.used >= BUSY {
            self.passing = Some(AbortOnDropHandle::new(tokio::spawn(queue().pass())));
        }
        if let Some(passing) = &mut self.passing {
            // An error means that the runtime ends.
            let _ = ready!(Pin::new(passing).poll(cx));
            self.passing = None;
            self.used = Duration::ZERO;
            self.until = Instant::now();
        }
        Poll::Ready(())
    }

    /// Notes that a read found no bytes.
    pub fn rest(&mut self) {
        self.work();
        self.rests = true;
    }

    fn work(&mut self) {
        let step = self.count().min(STEP_MAX);
        self.used += step;
    }

    /// The time since the last count.
    fn count(&mut self) -> Duration {
        let (begun, now) = (self.until, Instant::now());
        self.until = now;
        now.saturating_duration_since(begun)
    }
}

#[cfg(test)]
mod tests;
