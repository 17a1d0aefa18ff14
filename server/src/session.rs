//! One session: a task that feeds the machine, sends its frames, and answers questions between them.

use std::sync::Arc;

use bytes::Bytes;
use decree::v1::{self, reconcile_request};
use server_session::{IncomingFrame, Pieces, Registered, Session};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tonic::Streaming;
use tracing::Instrument;

use self::{
    end::End,
    handle::Query,
    outbox::{LastWord, Outbox},
    telemetry::Telemetry,
    traces::Traces,
};
pub(crate) use self::{end_signal::EndSignal, handle::SessionHandle, outbox::Frames};
use crate::{
    access::{Admitted, Caller, OpenStream},
    clock::Clock,
    error::Refusal,
    memory::MemoryShare,
    peer::Peer,
    places::{Place, Settled},
    recorder::RecordedSession,
    registry::Registration,
    shared::Shared,
    shares::Share,
    turn::Turn,
};

mod end;
mod end_signal;
mod gauges;
mod handle;
mod outbox;
mod telemetry;
mod traces;

/// The frames taken in a row, as far as they have arrived, before the session is asked for work.
const FRAMES_IN_A_ROW: usize = 64;
/// More bytes than a valid uid, name or shard of a cluster has: 128 characters.
const CLUSTER_BYTES_MAX: usize = 512;

/// What a session's task owns.
struct SessionTask {
    shared: Arc<Shared>,
    inbound: Streaming<Bytes>,
    outbox: Outbox,
    session: RecordedSession,
    memory: MemoryShare,
    /// The frame that is being taken.
    frame: Option<IncomingFrame>,
    turn: Turn,
    telemetry: Telemetry,
    traces: Traces,
    clock: Clock,
    end_signal: EndSignal,
    queries: mpsc::Receiver<Query>,
    /// When the oldest frame arrived that no batch has followed.
    arrived: Option<Instant>,
    /// When the caller's deadline passes.
    deadline: Option<Instant>,
    draining: bool,
    _registration: Registration,
    _open: OpenStream,
    _share: Share,
    _connection: Option<Settled>,
}

/// Where a session's stream came from, and the place that it holds until its Hello.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) peer: Peer,
    pub(crate) caller: Caller,
    pub(crate) place: Place,
    /// When the caller's deadline passes.
    pub(crate) deadline: Option<Instant>,
}

enum Input {
    Drain,
    Query(Query),
    /// A frame, or the end of the stream.
    Frame(Option<Bytes>),
    /// Nothing new: there is work left.
    Resume,
    Timer,
}

/// Begins a session on a stream.
pub(crate) fn open(shared: &Arc<Shared>, inbound: Streaming<Bytes>, arrival: Arrival) -> Frames {
    let (outbox, last_word, frames) = Outbox::new(shared.session_config().patience());
    let task = run(Arc::clone(shared), inbound, outbox, arrival);
    shared
        .tasks
        .spawn(supervise(Arc::clone(shared), task, last_word));
    frames
}

/// Runs a session in a task of its own, so that a panic ends it and nothing else.
async fn supervise(
    shared: Arc<Shared>,
    session: impl Future<Output = End> + Send + 'static,
    last_word: LastWord,
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
        last_word.say(refusal);
    }
}

async fn run(
    shared: Arc<Shared>,
    inbound: Streaming<Bytes>,
    outbox: Outbox,
    arrival: Arrival,
) -> End {
    let (task, span) = match greet(shared, inbound, outbox, arrival).await {
        Ok(greeted) => greeted,
        Err(end) => {
            tracing::info!(reason = end.reason(), why = end.why(), "session refused");
            return end;
        }
    };
    let live = async move {
        let mut task = task;
        let agent = &task.session.identity().agent_instance;
        tracing::info!(agent, "session opened");
        let end = task.live().await;
        tracing::info!(reason = end.reason(), why = end.why(), "session ended");
        task.leave();
        end
    };
    live.instrument(span).await
}

/// Waits for the hello, takes a session's place, opens the session and registers it.
async fn greet(
    shared: Arc<Shared>,
    mut inbound: Streaming<Bytes>,
    outbox: Outbox,
    arrival: Arrival,
) -> Result<(SessionTask, tracing::Span), End> {
    let Arrival {
        peer,
        caller,
        place: pending,
        deadline,
    } = arrival;
    let mut first = first_frame(&shared, &mut inbound, &pending).await?;
    let admitted = admit(&shared, &caller, &mut first)?;
    // A proxy brings many identities, and an identity may be that of many clusters.
    let owner = (caller.identity(), peer.source());
    let lane = shared.turnstile.lane(owner);
    // Hundreds may begin at once.
    lane.clone().pass().await;
    let clock = Clock::start();
    let (now, session_id) = (clock.now(), shared.draw_session_id());
    let config = shared.session_config();
    let recorder = shared.recorder.as_ref();
    let tape = recorder.map(|it| it.tape(now, &config, &session_id, &first));
    let session = Session::open(now, config, session_id, first).map_err(Refusal::from)?;
    let admitted = admitted.ok_or(Refusal::Session(server_session::Refusal::HelloExpected))?;
    let identity = session.identity();
    let span = span_of(identity);
    let (handle, queries) = SessionHandle::new(EndSignal::default());
    let end_signal = handle.end_signal().clone();
    let share = shared.sessions.take(&caller, end_signal.clone())?;
    let registration = Arc::clone(&shared.registry).register(Registered {
        identity: Arc::clone(identity),
        handle,
    })?;
    let id = &identity.session_id;
    let open = shared.access.open_session(admitted, id, &end_signal);
    let cluster = (&identity.cluster_uid, &identity.shard);
    let memory = shared.memory.share(owner, cluster, end_signal.clone());
    let telemetry = Telemetry::new(identity, &shared);
    let traces = Traces::new(shared.tracer.clone(), identity);
    if let (Some(recorder), Some(tape)) = (recorder, &tape) {
        recorder.begin(tape, now.wall, &identity.session_id);
    }
    let session = RecordedSession::new(session, tape);
    let turn = Turn::begin(lane);
    let task = SessionTask {
        shared,
        inbound,
        outbox,
        session,
        memory,
        frame: None,
        turn,
        telemetry,
        traces,
        clock,
        end_signal,
        queries,
        arrived: None,
        deadline,
        draining: false,
        _registration: registration,
        _open: open,
        _share: share,
        _connection: peer.settle(),
    };
    Ok((task, span))
}

/// Returns what every line of a session's log says.
fn span_of(identity: &server_session::Identity) -> tracing::Span {
    tracing::error_span!(
        "session",
        session = identity.session_id,
        cluster = identity.cluster(),
        shard = identity.shard,
        epoch = identity.epoch,
    )
}

/// Waits for the first frame, which is to be a hello.
async fn first_frame(
    shared: &Shared,
    inbound: &mut Streaming<Bytes>,
    place: &Place,
) -> Result<v1::ReconcileRequest, End> {
    let patience = shared.config.hello_deadline;
    let first = tokio::select! {
        biased;
        () = shared.draining.cancelled() => return Err(End::Refused(shared.drain_refusal())),
        () = place.wait_taken() => return Err(shared.pending_refusal().into()),
        first = timeout(patience, inbound.message()) => first,
    };
    let first = first.map_err(|_| End::Refused(Refusal::HelloTimeout(patience)))?;
    let first = first
        .map_err(|status| End::broken(&status, shared))?
        .ok_or(End::Closed)?;
    let first = IncomingFrame::new(first).and_then(|mut first| first.next_part(1));
    let first = first.map_err(End::malformed)?.ok_or(End::Closed)?;
    first.into_request().map_err(End::malformed)
}

/// Admits the caller as the agent of the cluster that a hello names. What is no hello, or too long to be a valid one, is left to
/// the session to refuse.
fn admit(
    shared: &Shared,
    caller: &Caller,
    first: &mut v1::ReconcileRequest,
) -> Result<Option<Admitted>, Refusal> {
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

// === impl SessionTask ===

impl SessionTask {
    async fn live(&mut self) -> End {
        loop {
            if let Err(end) = self.step().await {
                return end;
            }
            self.turn.give_way().await;
        }
    }

    async fn step(&mut self) -> Result<(), End> {
        self.speak().await?;
        let input = self.next().await?;
        // However much comes in.
        self.check_deadlines()?;
        match input {
            Input::Drain => {
                self.draining = true;
                self.session.handle_drain(self.clock.now());
            }
            Input::Query(query) => {
                query(&self.session, self.clock.now().wall);
                // However many ask, frames have their turn.
                if self.is_busy() || self.memory.is_short() {
                    return self.take().await;
                }
                if let Some(frame) = self.next_arrived().await? {
                    return self.begin(frame).await;
                }
            }
            Input::Frame(frame) => return self.begin(frame).await,
            Input::Resume => return self.take().await,
            Input::Timer => self.session.handle_timeout(self.clock.now()),
        }
        Ok(())
    }

    /// Sends what there is to say. Where the session pauses in its work, the rest is said later.
    async fn speak(&mut self) -> Result<(), End> {
        loop {
            let begun = Instant::now();
            let frame = self.session.poll_outgoing(self.clock.now());
            let took = begun.elapsed();
            let (frame, spans) = frame.map(|it| self.traces.decide(it, took)).unzip();
            let spans = spans.unwrap_or_default();
            self.telemetry.observe(&mut self.session, took, &spans);
            let Some(frame) = frame else { break };
            let decides = frame.has_batches();
            self.outbox.send(&self.end_signal, frame).await?;
            if let Some(arrived) = self.arrived.take_if(|_| decides) {
                self.telemetry.decided_within(arrived.elapsed(), &spans);
            }
            drop(spans);
            self.turn.give_way().await;
        }
        if !self.is_busy() {
            self.arrived = None;
        }
        self.telemetry.measure(&self.session);
        match self.session.poll_end() {
            None => Ok(()),
            Some(server_session::End::Closed) => Err(End::Closed),
            Some(server_session::End::Refused(refusal)) => Err(Refusal::from(refusal).into()),
        }
    }

    /// Returns whether there is work left that needs no news.
    fn is_busy(&self) -> bool {
        let may_grow = !self.memory.is_short();
        (may_grow && self.frame.is_some()) || self.session.has_work()
    }

    async fn next(&mut self) -> Result<Input, End> {
        let wake = self.clock.instant(self.session.poll_timeout());
        let others = [self.deadline, self.outbox.give_up_at()];
        let wake = others.into_iter().flatten().fold(wake, Instant::min);
        let (is_busy, is_short) = (self.is_busy(), self.memory.is_short());
        let waiting = Instant::now();
        let input = tokio::select! {
            biased;
            refusal = self.end_signal.wait() => Err(End::Refused(refusal)),
            () = self.shared.draining.cancelled(), if !self.draining => Ok(Input::Drain),
            Some(query) = self.queries.recv() => Ok(Input::Query(query)),
            () = std::future::ready(()), if is_busy => Ok(Input::Resume),
            () = self.memory.room(), if is_short => Ok(Input::Resume),
            frame = self.inbound.message(), if !is_short => match frame {
                Ok(frame) => Ok(Input::Frame(frame)),
                Err(status) => Err(End::broken(&status, &self.shared)),
            },
            () = sleep_until(wake) => Ok(Input::Timer),
        };
        self.turn.waited(waiting.elapsed());
        input
    }

    /// Begins to take a frame; `None` is the end of the stream.
    async fn begin(&mut self, frame: Option<Bytes>) -> Result<(), End> {
        self.arrived = Some(Instant::now());
        self.open(frame)?;
        self.take().await
    }

    fn open(&mut self, frame: Option<Bytes>) -> Result<(), End> {
        match frame {
            Some(frame) => self.frame = Some(IncomingFrame::new(frame).map_err(End::malformed)?),
            None => self.session.handle_closed(self.clock.now()),
        }
        Ok(())
    }

    /// Takes the frame that is there and those that have arrived behind it, as long as the turn lasts.
    async fn take(&mut self) -> Result<(), End> {
        for _ in 0..FRAMES_IN_A_ROW {
            if self.memory.is_short() {
                return Ok(());
            }
            while let Some(frame) = &mut self.frame
                && !self.session.has_work()
            {
                let part = frame.next_part(self.turn.items()).map_err(End::malformed)?;
                if frame.is_read() {
                    self.frame = None;
                }
                if let Some(mut part) = part {
                    let spans = self.traces.receive(&mut part, self.arrived);
                    self.session.handle_part(self.clock.now(), part);
                    drop(spans);
                }
                self.memory.hold(self.session.stats().sizes.bytes)?;
                let pauses = self.turn.is_over() || self.memory.is_short();
                if pauses || self.session.poll_end().is_some() {
                    return Ok(());
                }
            }
            if self.session.has_work() {
                return Ok(());
            }
            let Some(next) = self.next_arrived().await? else {
                return Ok(());
            };
            self.open(next)?;
        }
        Ok(())
    }

    /// Returns the next frame if it has arrived.
    async fn next_arrived(&mut self) -> Result<Option<Option<Bytes>>, End> {
        tokio::select! {
            biased;
            next = self.inbound.message() => match next {
                Ok(next) => Ok(Some(next)),
                Err(status) => Err(End::broken(&status, &self.shared)),
            },
            () = std::future::ready(()) => Ok(None),
        }
    }

    /// Ends the session where its caller's deadline has passed, or the agent has not read for too long.
    fn check_deadlines(&mut self) -> Result<(), End> {
        if self
            .deadline
            .is_some_and(|deadline| deadline <= Instant::now())
        {
            return Err(End::Refused(Refusal::DeadlineExceeded));
        }
        self.outbox.check_read()
    }

    /// Gives back what the session holds: its place at once, and its memory piece by piece.
    fn leave(self) {
        let Self {
            session,
            memory,
            turn,
            ..
        } = self;
        tokio::spawn(free(session.into_pieces(), memory, turn));
    }
}

/// Frees a session in turns: one that held a cluster has a million pieces. They count as held until the last is freed.
async fn free(pieces: Pieces, memory: MemoryShare, mut turn: Turn) {
    for () in pieces {
        turn.give_way().await;
    }
    drop(memory);
}

/// Returns who has a session of a cluster, for tests.
#[cfg(test)]
pub(crate) fn identity(cluster_uid: &str, epoch: i64) -> server_session::Identity {
    server_session::Identity {
        session_id: crate::shared::random_session_id(),
        cluster_uid: cluster_uid.to_owned(),
        cluster_name: format!("name of {cluster_uid}"),
        shard: String::new(),
        agent_instance: "agent-0".to_owned(),
        epoch,
        mode: v1::Mode::Enforce,
        started: server_core::Timestamp::default(),
    }
}

#[cfg(test)]
mod tests;
