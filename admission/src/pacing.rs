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
use tokio_util::task::AbortOnDropHandle;

use crate::{
    fair_queue::{PeerQueue, Permit},
    usage::Usage,
};

/// How long a session keeps a permit while it has steps to run. Handing a permit over takes much less time.
const SLICE: Duration = Duration::from_millis(1);
/// The maximum time counted for one step of a session. If a step takes longer, the kernel was running something else.
const SESSION_STEP_MAX: Duration = Duration::from_micros(500);
/// The maximum time counted for one step of a connection, from one read to the next.
const CONNECTION_STEP_MAX: Duration = Duration::from_micros(60);

/// Paces one session. The sessions of a peer share their usage: a hundred of them are busy when they work as much as one that is busy.
#[derive(Debug)]
pub struct SessionPacer {
    queue: PeerQueue,
    /// The end of the time that is already counted.
    until: Instant,
    /// The permit of the peer, and when it goes to the next session.
    permit: Option<(Permit, Instant)>,
}

/// Paces one connection.
pub struct ConnectionPacer {
    usage: Usage,
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

// === impl SessionPacer ===

impl SessionPacer {
    /// `queue` supplies the permits of the session.
    pub fn new(queue: PeerQueue) -> Self {
        Self {
            queue,
            until: Instant::now(),
            permit: None,
        }
    }

    /// Waits until the next step can run: a large step, and any step of a busy peer, needs a permit.
    pub async fn turn(&mut self, is_large: bool) {
        if self.permit.is_none() && (is_large || self.queue.usage().is_busy(self.until)) {
            let permit = self.queue.enter().await;
            self.until = Instant::now();
            self.permit = Some((permit, self.until + SLICE));
        }
    }

    /// Runs a step after its [`turn`](Self::turn). During a large step, the other tasks of its thread move to another thread.
    pub async fn step<T>(&mut self, is_large: bool, step: impl FnOnce() -> T) -> T {
        self.turn(is_large).await;
        let result = if is_large { in_place(step) } else { step() };
        let now = self.count();
        if self.permit.take_if(|(_, end)| *end <= now).is_some() {
            yield_now().await;
        }
        result
    }

    /// Leaves the time since the last step out of the usage, because it was spent on the questions of others.
    pub fn skip(&mut self) {
        self.until = Instant::now();
    }

    /// Counts the time since the last count as a step, and returns its end.
    fn count(&mut self) -> Instant {
        let now = Instant::now();
        let mut usage = self.queue.usage();
        usage.work(self.until, now, SESSION_STEP_MAX);
        self.until = now;
        now
    }

    /// Waits for an external event. Meanwhile the session rests, and its permit is free for another session.
    pub async fn wait<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut rests = false;
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() && !rests {
                self.count();
                self.permit = None;
                rests = true;
            } else if polled.is_ready() && rests {
                self.until = Instant::now();
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
            usage: Usage::default(),
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
        if !std::mem::take(&mut self.rests) {
            self.usage.work_on(now, CONNECTION_STEP_MAX);
        }
        if self.passing.is_none() && self.usage.is_busy(now) {
            self.passing = Some(AbortOnDropHandle::new(tokio::spawn(queue().pass())));
        }
        if let Some(passing) = &mut self.passing {
            // An error means that the runtime ends.
            let _ = ready!(Pin::new(passing).poll(cx));
            self.passing = None;
            self.usage = Usage::default();
        }
        Poll::Ready(())
    }

    /// Notes that a read found no bytes.
    pub fn rest(&mut self) {
        self.usage.work_on(Instant::now(), CONNECTION_STEP_MAX);
        self.rests = true;
    }
}

#[cfg(test)]
mod tests;
