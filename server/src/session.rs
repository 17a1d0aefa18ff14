//! One session: one task, one controller. Frames in, frames out, and whatever others ask of it, one at a time.

use std::{sync::Arc, time::Duration};

use decree::v1::{self, reconcile_response::Frame};
use server_core::Timestamp;
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep_until, timeout},
};
use tonic::{Code, Status, Streaming};
use tracing::Instrument;

pub(crate) use self::{
    answer::Ask,
    ending::Ending,
    hello::{Identity, PROTOCOL},
    outbox::Frames,
};
use self::{
    desk::Desk,
    intake::Intake,
    outbox::{LastWord, Outbox},
};
use crate::{
    clock,
    error::{self, Limit, Refusal},
    registry::{Member, Seat},
    shared::Shared,
    wire::encode,
};

mod answer;
mod desk;
mod ending;
mod gauges;
mod hello;
mod intake;
mod mirror;
mod outbox;

/// The questions of others that wait while the session is busy; beyond them those who ask wait.
const ASKS: usize = 16;
/// The frames taken in a row, as far as they have arrived, before the controller is asked for work.
const FRAMES_PER_TURN: usize = 64;
/// How many heartbeat intervals without a frame end a session.
const SILENT_INTERVALS: u32 = 4;
/// How long a session sleeps at most, so that a wall clock that was set is noticed.
const FAR: Duration = Duration::from_secs(60);

/// How a session ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The agent closed its half of the stream.
    Closed,
    /// The agent is gone.
    Gone,
    /// The server ended it.
    Refused(Refusal),
}

struct Session {
    shared: Arc<Shared>,
    inbound: Streaming<v1::ReconcileRequest>,
    outbox: Outbox,
    ending: Ending,
    asks: mpsc::Receiver<Ask>,
    intake: Intake,
    desk: Desk,
    /// When the agent was last heard of.
    heard: Instant,
    /// When the oldest frame arrived that no batch has followed.
    arrived: Option<Instant>,
    /// When the caller's deadline passes.
    deadline: Option<Instant>,
    draining: bool,
    _seat: Seat,
}

enum Turn {
    Drain,
    Ask(Ask),
    Frame(Box<Option<v1::ReconcileRequest>>),
    Timer,
}

/// Begins a session on a stream; it holds `permit` for as long as it lives.
pub(crate) fn open(
    shared: &Arc<Shared>,
    inbound: Streaming<v1::ReconcileRequest>,
    deadline: Option<Instant>,
    permit: OwnedSemaphorePermit,
) -> Frames {
    let patience = shared.config.heartbeat_interval * SILENT_INTERVALS;
    let (outbox, frames) = Outbox::new(patience);
    let last_word = outbox.last_word();
    let task = run(Arc::clone(shared), inbound, outbox, deadline);
    shared
        .tasks
        .spawn(supervise(Arc::clone(shared), task, last_word, permit));
    frames
}

/// Runs a session in a task of its own, so that a panic ends it and nothing else.
async fn supervise(
    shared: Arc<Shared>,
    session: impl Future<Output = End> + Send + 'static,
    last_word: LastWord,
    permit: OwnedSemaphorePermit,
) {
    let end = tokio::spawn(session).await.unwrap_or_else(|_| {
        shared.metrics.panics.inc();
        End::Refused(Refusal::Panicked)
    });
    shared
        .metrics
        .session_ends
        .get_or_create(&[("reason", end.reason())])
        .inc();
    if let End::Refused(refusal) = end {
        last_word
            .say(refusal, shared.config.heartbeat_interval)
            .await;
    }
    drop(permit);
}

async fn run(
    shared: Arc<Shared>,
    inbound: Streaming<v1::ReconcileRequest>,
    outbox: Outbox,
    deadline: Option<Instant>,
) -> End {
    let (mut session, span) = match greet(shared, inbound, outbox, deadline).await {
        Ok(greeted) => greeted,
        Err(end) => {
            tracing::info!(reason = end.reason(), why = end.why(), "session refused");
            return end;
        }
    };
    let live = async {
        tracing::info!(
            agent = session.desk.identity.agent_instance,
            "session opened"
        );
        let end = session.live().await;
        tracing::info!(reason = end.reason(), why = end.why(), "session ended");
        end
    };
    live.instrument(span).await
}

/// Waits for the hello, seats the session and welcomes the agent.
async fn greet(
    shared: Arc<Shared>,
    mut inbound: Streaming<v1::ReconcileRequest>,
    mut outbox: Outbox,
    deadline: Option<Instant>,
) -> Result<(Session, tracing::Span), End> {
    let patience = shared.config.hello_deadline;
    let first = tokio::select! {
        biased;
        () = shared.draining.cancelled() => return Err(End::Refused(shared.drain_refusal())),
        first = timeout(patience, inbound.message()) => first,
    };
    let first = first.map_err(|_| End::Refused(Refusal::HelloTimeout(patience)))?;
    let first = first
        .map_err(|status| broken(&status, &shared))?
        .ok_or(End::Closed)?;
    let mut intake = Intake::default();
    let hello = intake.hello(first)?;
    let (identity, config) = hello::read(clock::now(), &hello, &shared.config.limits)?;
    let span = tracing::error_span!(
        "session",
        session = identity.session_id,
        cluster = identity.cluster(),
        shard = identity.shard,
        epoch = identity.epoch,
    );
    let (identity, ending) = (Arc::new(identity), Ending::default());
    let (ask, asks) = mpsc::channel(ASKS);
    let member = Member {
        identity: Arc::clone(&identity),
        asks: ask,
        ending: ending.clone(),
    };
    let seat = Arc::clone(&shared.registry).seat(member)?;
    outbox.send(&ending, welcome(&identity, &shared)).await?;
    let desk = Desk::new(
        identity,
        config,
        shared.metrics.clone(),
        Arc::clone(&shared.watchers),
    );
    let session = Session {
        shared,
        inbound,
        outbox,
        ending,
        asks,
        intake,
        desk,
        heard: Instant::now(),
        arrived: None,
        deadline,
        draining: false,
        _seat: seat,
    };
    Ok((session, span))
}

fn welcome(identity: &Identity, shared: &Shared) -> Frame {
    let limits = &shared.config.limits;
    let int = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    Frame::Welcome(v1::Welcome {
        protocol: PROTOCOL,
        session_id: identity.session_id.clone(),
        limits: Some(v1::Limits {
            max_frame_bytes: int(limits.frame_bytes_max),
            max_operations_in_flight: int(limits.operations_in_flight_max),
            max_objects: int(limits.objects_max).into(),
        }),
        heartbeat_interval: Some(encode::duration(clock::span(
            shared.config.heartbeat_interval,
        ))),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Returns what a broken inbound stream means: the agent's message is bad, or the agent is gone.
fn broken(status: &Status, shared: &Shared) -> End {
    let bad = [
        Code::Internal,
        Code::OutOfRange,
        Code::ResourceExhausted,
        Code::Unimplemented,
    ];
    if bad.contains(&status.code()) {
        let max = shared.config.limits.frame_bytes_max;
        End::Refused(error::from_transport(status, max))
    } else {
        End::Gone
    }
}

// === impl Session ===

impl Session {
    async fn live(&mut self) -> End {
        loop {
            if let Err(end) = self.turn().await {
                return end;
            }
        }
    }

    async fn turn(&mut self) -> Result<(), End> {
        self.speak().await?;
        match self.next().await? {
            Turn::Drain => self.drain().await,
            Turn::Ask(ask) => {
                self.desk.answer(clock::now(), ask);
                // However many ask, frames have their turn.
                match self.next_arrived().await? {
                    Some(frame) => self.take(frame).await,
                    None => Ok(()),
                }
            }
            Turn::Frame(first) => self.take(*first).await,
            Turn::Timer => self.check_patience(),
        }
    }

    /// Sends everything that there is to say.
    async fn speak(&mut self) -> Result<(), End> {
        self.desk.handle_timeout(clock::now());
        self.notify().await?;
        while !self.draining
            && let Some(batches) = self.desk.poll_batches(clock::now())
        {
            self.outbox.send(&self.ending, batches).await?;
            if let Some(arrived) = self.arrived.take() {
                self.shared
                    .metrics
                    .decision_latency
                    .observe(arrived.elapsed().as_secs_f64());
            }
        }
        self.arrived = None;
        self.notify().await?;
        self.desk.measure();
        if self.draining && !self.desk.is_busy() {
            return Err(End::Refused(self.shared.drain_refusal()));
        }
        if self.outbox.last() + self.shared.config.heartbeat_interval <= Instant::now() {
            let heartbeat = v1::Heartbeat {
                last_sequence: self.intake.sequence(),
                view_age: None,
            };
            self.outbox
                .send(&self.ending, Frame::Heartbeat(heartbeat))
                .await?;
        }
        Ok(())
    }

    async fn notify(&mut self) -> Result<(), End> {
        for notice in self.desk.poll_notices() {
            self.outbox.send(&self.ending, notice).await?;
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Turn, End> {
        let wake = self.wake(clock::now());
        tokio::select! {
            biased;
            refusal = self.ending.wait() => Err(End::Refused(refusal)),
            () = self.shared.draining.cancelled(), if !self.draining => Ok(Turn::Drain),
            Some(ask) = self.asks.recv() => Ok(Turn::Ask(ask)),
            frame = self.inbound.message() => match frame {
                Ok(frame) => Ok(Turn::Frame(Box::new(frame))),
                Err(status) => Err(broken(&status, &self.shared)),
            },
            () = sleep_until(wake) => Ok(Turn::Timer),
        }
    }

    /// Returns when something is due without anything happening.
    fn wake(&self, now: Timestamp) -> Instant {
        let heartbeat = self.outbox.last() + self.shared.config.heartbeat_interval;
        let core = self.desk.poll_timeout();
        let core = core.map(|due| Instant::now() + clock::until(now, due).min(FAR));
        let others = [Some(self.silent_at()), self.deadline, core];
        others.into_iter().flatten().fold(heartbeat, Instant::min)
    }

    /// Takes a frame and those that have arrived behind it; `None` is the end of the stream.
    async fn take(&mut self, first: Option<v1::ReconcileRequest>) -> Result<(), End> {
        self.heard = Instant::now();
        self.arrived = Some(self.heard);
        self.desk.tell(clock::now());
        let mut frame = first;
        for taken in 1.. {
            let Some(request) = frame else {
                self.speak().await?;
                return Err(End::Closed);
            };
            self.desk.expect(request.sequence);
            self.intake.take(request, &mut self.desk)?;
            self.check_objects()?;
            if taken == FRAMES_PER_TURN {
                break;
            }
            let Some(next) = self.next_arrived().await? else {
                break;
            };
            frame = next;
        }
        Ok(())
    }

    /// Returns the next frame if it has arrived.
    async fn next_arrived(&mut self) -> Result<Option<Option<v1::ReconcileRequest>>, End> {
        tokio::select! {
            biased;
            next = self.inbound.message() => match next {
                Ok(next) => Ok(Some(next)),
                Err(status) => Err(broken(&status, &self.shared)),
            },
            () = std::future::ready(()) => Ok(None),
        }
    }

    fn check_objects(&self) -> Result<(), End> {
        let max = self.shared.config.limits.objects_max;
        if self.desk.objects() > max {
            return Err(End::Refused(Refusal::Exhausted {
                what: Limit::Objects,
                max,
            }));
        }
        Ok(())
    }

    fn check_patience(&self) -> Result<(), End> {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return Err(End::Refused(Refusal::DeadlineExceeded));
        }
        if self.silent_at() <= now {
            return Err(End::Refused(Refusal::Silent(self.patience())));
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), End> {
        self.draining = true;
        let config = &self.shared.config;
        let deadline = clock::now().plus(clock::span(config.drain_deadline));
        let drain = v1::Drain {
            deadline: Some(encode::time(deadline)),
            reconnect_after: Some(encode::duration(clock::span(config.reconnect_after))),
        };
        self.outbox.send(&self.ending, Frame::Drain(drain)).await
    }

    fn silent_at(&self) -> Instant {
        self.heard + self.patience()
    }

    fn patience(&self) -> Duration {
        self.shared.config.heartbeat_interval * SILENT_INTERVALS
    }
}

// === impl End ===

impl End {
    fn reason(&self) -> &'static str {
        match self {
            Self::Closed => "CLOSED_BY_AGENT",
            Self::Gone => "AGENT_GONE",
            Self::Refused(refusal) => refusal.reason(),
        }
    }

    fn why(&self) -> String {
        match self {
            Self::Closed | Self::Gone => String::new(),
            Self::Refused(refusal) => refusal.message(),
        }
    }
}

impl From<Refusal> for End {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

#[cfg(test)]
mod tests;
