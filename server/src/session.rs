//! One session: a task that feeds the state machine, sends its frames, and answers questions between them and while it waits.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use decree_api::v1::{self, reconcile_request, reconcile_response};
use decree_core::Sizes;
use prost::Message;
use server_access::Admission;
use server_session::{IncomingFrame, Session};
use service::admission::SessionPacer;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::Streaming;
use tracing::Instrument;

pub(crate) use self::outbox::Frames;
use self::{
    end::SessionEnd,
    outbox::{FinalStatus, Outbox},
    telemetry::Telemetry,
};
use crate::{
    access::{Caller, OpenStream},
    capacity::{SettledSlot, Slot},
    clock::Clock,
    error::Refusal,
    peer::{ConnectionPeer, queue_of},
    recorder::RecordedSession,
    registry::{LiveSession, Questions, Registration, SessionHandle},
    shared::Shared,
};

mod end;
mod outbox;
mod telemetry;

/// The maximum number of arrived frames that are taken in a row before the session is polled.
const FRAMES_IN_A_ROW: usize = 64;
/// A frame from this size on is a large step: a few milliseconds.
const LARGE_FRAME: usize = 256 << 10;
/// The longest part of a frame, apart from its last item. The rest of a small frame is a large step.
const PART: Duration = Duration::from_millis(5);
/// With this many pods, the end of a list is a large step.
const LARGE_LIST: usize = 50_000;
/// How long a session without memory waits before it looks at other things than memory.
const SHORT: Duration = Duration::from_millis(100);
/// With this many queued ReplicaSets, deciding is a large step.
const LARGE_QUEUE: usize = 256;
/// With this many pods in a ReplicaSet, the choice of victims and a new selector are large steps.
const LARGE_REPLICA_SET: usize = 4_000;
/// More than the size of a valid uid, name or shard of a cluster: 128 characters.
const CLUSTER_BYTES_MAX: usize = 512;

struct SessionTask {
    shared: Arc<Shared>,
    inbound: Streaming<Bytes>,
    outbox: Outbox,
    session: RecordedSession,
    memory: Slot,
    pacer: SessionPacer,
    telemetry: Telemetry,
    clock: Clock,
    handle: SessionHandle,
    questions: Questions,
    /// The arrival of the oldest frame without a later batch.
    arrived: Option<Instant>,
    /// The caller's deadline.
    deadline: Option<Instant>,
    draining: bool,
    peer: ConnectionPeer,
    _registration: Registration,
    _open: OpenStream,
    _connection: Option<SettledSlot>,
}

/// A new stream, with its slot until the Hello.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) peer: ConnectionPeer,
    pub(crate) caller: Caller,
    pub(crate) slot: Slot,
    /// The caller's deadline.
    pub(crate) deadline: Option<Instant>,
}

enum SessionInput {
    Drain,
    /// A frame, or the end of the stream.
    Frame(Option<Bytes>),
    /// There may be memory for more.
    Room,
    Timer,
}

pub(crate) fn open(shared: &Arc<Shared>, inbound: Streaming<Bytes>, arrival: Arrival) -> Frames {
    let (outbox, final_status, frames) = Outbox::new(shared.session_config().patience());
    let task = run(Arc::clone(shared), inbound, outbox, arrival);
    shared
        .tasks
        .spawn(supervise(Arc::clone(shared), task, final_status));
    frames
}

/// Runs a session as a separate task, so that a panic ends only the session.
async fn supervise(
    shared: Arc<Shared>,
    session: impl Future<Output = SessionEnd> + Send + 'static,
    final_status: FinalStatus,
) {
    let end = tokio::spawn(session).await.unwrap_or_else(|_| {
        shared.metrics.panics.inc();
        SessionEnd::Refused(Refusal::Panicked)
    });
    shared
        .metrics
        .session_ends
        .get_or_create(&[("reason", end.reason())])
        .inc();
    if let SessionEnd::Refused(refusal) = end {
        final_status.send(refusal);
    }
}

async fn run(
    shared: Arc<Shared>,
    inbound: Streaming<Bytes>,
    outbox: Outbox,
    arrival: Arrival,
) -> SessionEnd {
    let peer = arrival.caller.peer();
    let (task, span) = match open_session(shared, inbound, outbox, arrival).await {
        Ok(opened) => opened,
        Err(end) => {
            let (reason, why) = (end.reason(), end.why());
            tracing::info!(peer, reason, why, "session refused");
            return end;
        }
    };
    task.live().instrument(span).await
}

/// Waits for the Hello, opens the session, and registers it.
async fn open_session(
    shared: Arc<Shared>,
    mut inbound: Streaming<Bytes>,
    outbox: Outbox,
    arrival: Arrival,
) -> Result<(SessionTask, tracing::Span), SessionEnd> {
    let Arrival {
        peer,
        caller,
        slot: pending,
        deadline,
    } = arrival;
    let first = first_frame(&shared, &mut inbound, &pending).await?;
    let queue = queue_of(&shared.busy, &caller.identity, peer.source());
    // Hundreds of sessions may begin at once. None holds a message while it waits, because that takes many times the bytes of its frame.
    queue.clone().pass().await;
    let mut first = first.to_message().map_err(Refusal::from)?;
    let admission = admit(&shared, &caller, &mut first)?;
    let clock = Clock::start();
    let (now, session_id) = (clock.now(), shared.draw_session_id());
    let config = shared.session_config();
    let recorder = shared.recorder.as_ref();
    let mut recording = recorder.map(|it| it.recording(now, &config, &session_id, &first));
    let session = Session::open(now, config, session_id, first).map_err(Refusal::from)?;
    let admission = admission.ok_or(Refusal::Session(server_session::Refusal::HelloExpected))?;
    let identity = session.identity();
    let span = span_of(identity, &caller);
    let (handle, questions) = SessionHandle::new();
    let owner = caller.owner();
    let registered = LiveSession {
        identity: Arc::clone(identity),
        handle: handle.clone(),
    };
    let mut registration = shared.registry.register(registered, owner.clone())?;
    let (id, end_signal) = (&identity.session_id, &handle.end_signal);
    let open = shared
        .access
        .open_session(caller, admission, id, end_signal);
    let memory = shared.memory.take(owner, 0, end_signal.clone())?;
    let telemetry = Telemetry::new(identity, &shared);
    if let Some(recording) = &mut recording {
        recording.begin(now.wall, &identity.session_id);
    }
    let mut session = RecordedSession::new(session, recording);
    if let Some((left, ago)) = registration.inherit().await {
        session.inherit(clock.now(), left, ago);
    }
    let pacer = SessionPacer::new(queue);
    let task = SessionTask {
        shared,
        inbound,
        outbox,
        session,
        memory,
        pacer,
        telemetry,
        clock,
        handle,
        questions,
        arrived: None,
        deadline,
        draining: false,
        _registration: registration,
        _open: open,
        _connection: peer.settle(),
        peer,
    };
    Ok((task, span))
}

/// The span whose fields are on every log line of a session.
fn span_of(identity: &server_session::SessionIdentity, caller: &Caller) -> tracing::Span {
    tracing::error_span!(
        "session",
        peer = caller.peer(),
        session = identity.session_id,
        cluster = identity.cluster(),
        shard = identity.shard,
        epoch = identity.epoch,
    )
}

/// Waits for the first frame, which must be a Hello.
async fn first_frame(
    shared: &Shared,
    inbound: &mut Streaming<Bytes>,
    slot: &Slot,
) -> Result<IncomingFrame, SessionEnd> {
    let patience = shared.config.hello_deadline;
    let first = tokio::select! {
        biased;
        () = shared.draining.cancelled() => return Err(SessionEnd::Refused(Shared::drain_refusal())),
        refusal = slot.end().wait() => return Err(refusal.into()),
        first = timeout(patience, inbound.message()) => first,
    };
    let first = first.map_err(|_| SessionEnd::Refused(Refusal::HelloTimeout(patience)))?;
    let first = first
        .map_err(|status| SessionEnd::broken(&status, shared))?
        .ok_or(SessionEnd::Closed)?;
    let first = IncomingFrame::from(first);
    first.check_whole().map_err(Refusal::from)?;
    Ok(first)
}

/// Admits the caller as the agent of the cluster in a Hello. `None` for another frame or a Hello that is too long, which the session
/// refuses.
fn admit(
    shared: &Shared,
    caller: &Caller,
    first: &mut v1::ReconcileRequest,
) -> Result<Option<Admission>, Refusal> {
    match &mut first.frame {
        Some(reconcile_request::Frame::Hello(hello))
            if hello.cluster_uid.len() <= CLUSTER_BYTES_MAX
                && hello.cluster_name.len() <= CLUSTER_BYTES_MAX
                && hello.shard.len() <= CLUSTER_BYTES_MAX =>
        {
            shared.access.admit(caller, hello).map(Some)
        }
        Some(_) | None => Ok(None),
    }
}

impl SessionTask {
    async fn live(mut self) -> SessionEnd {
        let agent = &self.session.identity().agent_instance;
        tracing::info!(agent, "session opened");
        let end = loop {
            if let Err(end) = self.step().await {
                break end;
            }
        };
        tracing::info!(reason = end.reason(), why = end.why(), "session ended");
        self.leave();
        end
    }

    async fn step(&mut self) -> Result<(), SessionEnd> {
        self.send_frames().await?;
        self.questions.work(&self.session, self.clock);
        let input = self.next().await?;
        // Here, so that deadlines are also checked under steady input.
        self.check_deadlines()?;
        match input {
            SessionInput::Drain => {
                self.draining = true;
                self.session.handle_drain(self.clock.now());
            }
            SessionInput::Frame(frame) => return self.take(frame).await,
            SessionInput::Room => {}
            SessionInput::Timer => self.session.handle_timeout(self.clock.now()),
        }
        Ok(())
    }

    async fn send_frames(&mut self) -> Result<(), SessionEnd> {
        loop {
            let is_large = self.decides_much();
            self.turn(is_large).await;
            let decide = || {
                let frame = self.session.poll_frame(self.clock.now());
                self.telemetry.observe(&mut self.session);
                // Before the agent has the frame, so that what follows from the frame finds the state behind it.
                self.handle.shown.publish(self.session.stats());
                frame
            };
            let frame = self.pacer.step(is_large, decide).await;
            let Some(frame) = frame else { break };
            let decides = matches!(frame.frame, Some(reconcile_response::Frame::Batches(_)));
            let bytes: Bytes = frame.encode_to_vec().into();
            self.hold(bytes.len())?;
            let send = self.outbox.send(&self.handle.end_signal, bytes);
            let send = self.questions.during(&self.session, self.clock, send);
            self.pacer.wait(send).await?;
            if let Some(arrived) = self.arrived.take_if(|_| decides) {
                self.telemetry.decided_within(arrived.elapsed());
            }
        }
        self.arrived = None;
        self.telemetry.measure(&self.session, &self.handle.shown);
        match self.session.poll_end() {
            None => Ok(()),
            Some(server_session::End::Closed) => Err(SessionEnd::Closed),
            Some(server_session::End::Refused(refusal)) => Err(Refusal::from(refusal).into()),
        }
    }

    /// Whether the next decisions may take long.
    fn decides_much(&self) -> bool {
        let Sizes {
            queued,
            syncing,
            largest_replica_set,
            ..
        } = self.session.stats().sizes;
        queued >= LARGE_QUEUE || (queued + syncing > 0 && largest_replica_set >= LARGE_REPLICA_SET)
    }

    async fn next(&mut self) -> Result<SessionInput, SessionEnd> {
        let wake = self.clock.instant(self.session.poll_timeout());
        let others = [self.deadline, self.outbox.give_up_at()];
        let wake = others.into_iter().flatten().fold(wake, Instant::min);
        let is_short = self.memory.is_short();
        // The agent is not silent while the session reads nothing, so that is no time to look.
        let (wake, due) = if is_short {
            (wake.max(Instant::now() + SHORT), SessionInput::Room)
        } else {
            (wake, SessionInput::Timer)
        };
        self.handle.shown.set_reading(!is_short);
        let input = async {
            tokio::select! {
                biased;
                refusal = self.handle.end_signal.wait() => Err(SessionEnd::Refused(refusal)),
                () = self.shared.draining.cancelled(), if !self.draining => Ok(SessionInput::Drain),
                () = self.memory.room(), if is_short => Ok(SessionInput::Room),
                frame = self.inbound.message(), if !is_short => frame
                    .map(SessionInput::Frame)
                    .map_err(|status| SessionEnd::broken(&status, &self.shared)),
                () = sleep_until(wake) => Ok(due),
            }
        };
        let input = self.questions.during(&self.session, self.clock, input);
        let input = self.pacer.wait(input).await;
        self.handle.shown.set_reading(false);
        input
    }

    /// Waits until the next step can run, and works on questions meanwhile.
    async fn turn(&mut self, is_large: bool) {
        if is_large {
            self.questions.work(&self.session, self.clock);
        }
        let turn = self.pacer.turn();
        self.questions.during(&self.session, self.clock, turn).await;
    }

    /// Takes a frame and the frames that have arrived after it. `None` is the end of the stream.
    async fn take(&mut self, mut frame: Option<Bytes>) -> Result<(), SessionEnd> {
        self.arrived = Some(Instant::now());
        for taken in 1..=FRAMES_IN_A_ROW {
            match frame {
                Some(frame) => self.take_one(frame).await?,
                None => self.session.handle_closed(self.clock.now()),
            }
            if taken == FRAMES_IN_A_ROW
                || self.memory.is_short()
                || self.session.poll_end().is_some()
            {
                break;
            }
            match self.next_arrived().await? {
                Some(next) => frame = next,
                None => break,
            }
        }
        Ok(())
    }

    /// Takes a frame in parts. Between them, other sessions of the peer run, and this one can be told to end.
    async fn take_one(&mut self, frame: Bytes) -> Result<(), SessionEnd> {
        let mut is_large = self.takes_much(frame.len());
        let frame = IncomingFrame::from(frame);
        self.turn(is_large).await;
        self.handle.shown.hear();
        let now = self.clock.now();
        loop {
            let take = || {
                let until = Instant::now() + PART;
                let pauses = || until <= Instant::now();
                self.session.handle_part(now, &frame, &pauses)
            };
            let is_complete = self.pacer.step(is_large, take).await;
            self.hold(0)?;
            if self.handle.end_signal.is_sent() {
                return Err(self.handle.end_signal.wait().await.into());
            }
            if is_complete {
                return Ok(());
            }
            self.check_deadlines()?;
            is_large = true;
            self.turn(is_large).await;
        }
    }

    /// Whether a part of a frame of this size may take long.
    fn takes_much(&self, frame: usize) -> bool {
        let sizes = self.session.stats().sizes;
        frame >= LARGE_FRAME
            || sizes.largest_replica_set >= LARGE_REPLICA_SET
            || sizes.pods >= LARGE_LIST
    }

    /// Counts the memory of the session, of the frames that its agent has not read, and of a frame of this size that is about to be sent.
    fn hold(&mut self, frame: usize) -> Result<(), SessionEnd> {
        let held = self.session.stats().sizes.bytes + self.outbox.bytes() + frame;
        Ok(self.memory.set_weight(held)?)
    }

    /// The next frame, if it has already arrived.
    async fn next_arrived(&mut self) -> Result<Option<Option<Bytes>>, SessionEnd> {
        tokio::select! {
            biased;
            next = self.inbound.message() => next
                .map(Some)
                .map_err(|status| SessionEnd::broken(&status, &self.shared)),
            () = std::future::ready(()) => Ok(None),
        }
    }

    /// Ends the session if its caller's deadline has passed, or the agent has not read for too long.
    fn check_deadlines(&mut self) -> Result<(), SessionEnd> {
        let is_over = |deadline| deadline <= Instant::now();
        if self.deadline.is_some_and(is_over) {
            return Err(SessionEnd::Refused(Refusal::DeadlineExceeded));
        }
        self.outbox.check_read()
    }

    /// Removes the registration of the session at once. The memory counts as held until a background thread has freed it.
    fn leave(self) {
        let Self {
            shared,
            mut session,
            memory,
            outbox,
            peer,
            _registration: registration,
            ..
        } = self;
        registration.leave(session.leave());
        outbox.leave(&peer, &shared.received);
        // Not when it is freed: the process may end before that.
        session.end_recording();
        shared.background.spawn(move || drop((session, memory)));
    }
}

#[cfg(test)]
pub(crate) mod tests;
