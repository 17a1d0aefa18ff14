//! The connection to the server: when to open it, how a session begins on it, how both sides know that the other lives, and how
//! it ends.
//!
//! ```text
//! Waiting ──settled──▶ Connecting ──connected──▶ Greeting ──Welcome──▶ Open ──Drain | stop──▶ Draining ──empty──▶ Closing
//!    ▲ backoff               │ lost                 │ lost                │ lost                                     │
//!    └───────────────────────┴──────────────────────┴─────────────────────┴──────────────── ended ───────────────────┘
//! ```
//! **Invariant:** a Hello is sent only when no call of an earlier session is in flight: the snapshot that follows contains its writes.

use std::{ops::RangeInclusive, time::Duration};

use decree_api::v1::{self, reconcile_request, reconcile_response::Frame};
use jiff::Timestamp;

use crate::{
    pace::{Backoff, TokenBucket, after, since},
    watch::history::WentBack,
};

pub mod frame;

/// The protocol that this agent speaks.
const PROTOCOL: i32 = 1;
/// How long a connection or a Welcome may take.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// How long the server may take to end the stream after the agent closed its half. The end of the drain may come before.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The shortest wait of a superseded agent. Without the wait, two agents would end each other's sessions in turn. An agent that is being
/// replaced stops before that.
const SUPERSEDED_WAIT_MIN: Duration = Duration::from_secs(60);
/// The longest of these waits, which double.
const SUPERSEDED_WAIT_MAX: Duration = Duration::from_secs(16 * 60);

/// The interval of session attempts, and their burst, however a server ends the sessions.
const SESSIONS_EVERY: Duration = Duration::from_secs(1);
const SESSIONS_AT_ONCE: u32 = 3;

// With any settings of a server, an agent comes back within minutes, and gives up a silent server.

/// The longest wait before a new connection that a server may request.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// The longest id of a session that the next Hello names.
const SESSION_ID_BYTES_MAX: usize = 128;
/// The allowed heartbeat intervals. Four intervals of silence end a session.
const HEARTBEAT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
/// The heartbeat interval if the server names none.
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// The most operations in flight, for any server.
const OPERATIONS_IN_FLIGHT_MAX: usize = 50_000;

/// How long a draining agent waits for the server to take its last outcomes.
const DRAINING_MAX: Duration = Duration::from_secs(30);
/// The most batches in a frame: each has an operation, and no more of these may be in flight.
const BATCHES_MAX: usize = OPERATIONS_IN_FLIGHT_MAX;
/// How many outcomes may wait for a server that sends batches and reads no outcomes.
pub(crate) const OUTCOMES_WAITING_MAX: usize = 2 * OPERATIONS_IN_FLIGHT_MAX;
/// How many events may wait for a server that does not read, besides two for each known object.
pub(crate) const EVENTS_WAITING_MAX: usize = 4_096;

/// How many heartbeat intervals without any frame end the session (docs/protocol.md).
const SILENT_INTERVALS: u32 = 4;

/// A command to the shell about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkCommand {
    /// Open a connection and a stream on it.
    Connect,
    /// Close this half of the stream: no frame follows.
    Close,
    /// Drop the connection.
    Abort,
}

/// Why a connection ended, or could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The server ended the stream in order.
    Ended,
    /// The transport broke, or the server is unreachable.
    Lost(String),
    /// The versions of the cluster went back, so this agent ended the connection.
    WentBack(WentBack),
    /// Another agent of the same cluster and shard took over. The text of the status names it.
    Superseded(String),
    /// The server refuses this agent: an immediate retry will not help.
    Refused {
        /// The status code and text.
        status: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
}

/// The state of the connection. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The first frame of each session, without the protocol and `resumes_session_id`.
    pub(crate) hello: v1::Hello,
    backoff: Backoff,
    superseded: Backoff,
    sessions: TokenBucket,
    state: State,
    /// When the state ends at the latest, if that is known.
    until: Option<Timestamp>,
    /// The session while it is open, draining included.
    pub(crate) session: Option<Session>,
    hello_due: bool,
    command: Option<LinkCommand>,
    sequence_out: u64,
    sequence_in: u64,
    batch_last: u64,
    session_last: String,
    reconnect_after: Duration,
    opened: Option<Timestamp>,
    stopping: bool,
}

/// A session that is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    /// The server's name for it.
    pub(crate) id: String,
    /// The server's limits.
    pub(crate) limits: v1::Limits,
    heartbeat: Duration,
    heartbeat_due: bool,
    sent: Timestamp,
    heard: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Connecting,
    Greeting,
    Open,
    Draining,
    Closing,
    Stopped,
}

impl Session {
    fn new(now: Timestamp, welcome: &v1::Welcome) -> Self {
        Self {
            id: welcome.session_id.clone(),
            limits: welcome.limits.unwrap_or_default(),
            heartbeat: heartbeat(welcome.heartbeat_interval),
            heartbeat_due: false,
            sent: now,
            heard: now,
        }
    }

    /// True if the server has been silent for too long. Otherwise, a heartbeat becomes due after a long pause in sending.
    ///
    /// A heartbeat that cannot be sent yet does not become due twice, so a blocked connection causes no busy loop.
    fn handle_timeout(&mut self, now: Timestamp) -> bool {
        if self.heartbeat_at() <= now {
            self.heartbeat_due = true;
            self.sent = now;
        }
        self.silent_at() <= now
    }

    fn poll_timeout(&self) -> Timestamp {
        self.heartbeat_at().min(self.silent_at())
    }

    fn heartbeat_at(&self) -> Timestamp {
        after(self.sent, self.heartbeat)
    }

    fn silent_at(&self) -> Timestamp {
        after(self.heard, self.heartbeat.saturating_mul(SILENT_INTERVALS))
    }
}

impl Link {
    /// Creates a link that connects at once. The waits before further connections are within `waits`, and the seed determines their jitter.
    pub(crate) fn new(hello: v1::Hello, waits: RangeInclusive<Duration>, seed: u64) -> Self {
        Self {
            hello,
            backoff: Backoff::new(*waits.start(), *waits.end(), seed),
            superseded: Backoff::new(SUPERSEDED_WAIT_MIN, SUPERSEDED_WAIT_MAX, seed),
            sessions: TokenBucket::new(SESSIONS_EVERY, SESSIONS_AT_ONCE),
            state: State::Waiting,
            until: Some(Timestamp::MIN),
            session: None,
            hello_due: false,
            command: None,
            sequence_out: 0,
            sequence_in: 0,
            batch_last: 0,
            session_last: String::new(),
            reconnect_after: Duration::ZERO,
            opened: None,
            stopping: false,
        }
    }

    pub(crate) fn handle_connected(&mut self, now: Timestamp) {
        if self.state == State::Connecting {
            (self.sequence_out, self.sequence_in, self.batch_last) = (0, 0, 0);
            self.enter(State::Greeting, Some(after(now, GREETING_MAX)));
            self.hello_due = true;
        }
    }

    /// Handles the end of the connection. Returns whether there was one.
    pub(crate) fn handle_disconnected(&mut self, now: Timestamp, cause: &Disconnect) -> bool {
        if matches!(self.state, State::Waiting | State::Stopped) {
            return false;
        }
        let lived = self.opened.take().map(|opened| since(now, opened));
        for backoff in [&mut self.superseded, &mut self.backoff] {
            // A session of the longest wait's length ends the doubling.
            if lived >= Some(backoff.max) {
                backoff.reset();
            }
        }
        let wait = match cause {
            Disconnect::Ended | Disconnect::Lost(_) | Disconnect::WentBack(_) => {
                self.backoff.next_wait()
            }
            Disconnect::Superseded(_) => self.superseded.next_wait(),
            Disconnect::Refused { retry_after, .. } => self
                .backoff
                .longest_wait()
                .max(retry_after.unwrap_or_default().min(WAIT_MAX)),
        };
        let wait = wait.max(std::mem::take(&mut self.reconnect_after));
        self.command = None;
        if self.stopping {
            self.enter(State::Stopped, None);
        } else {
            let until = after(now, wait).max(self.sessions.next(now));
            self.enter(State::Waiting, Some(until));
        }
        true
    }

    /// Ends the connection because the server broke the protocol or is silent. Returns whether there was one.
    pub(crate) fn abort(&mut self, now: Timestamp, cause: &Disconnect) -> bool {
        let connected = self.handle_disconnected(now, cause);
        if connected {
            self.command = Some(LinkCommand::Abort);
        }
        connected
    }

    pub(crate) fn hold_until(&mut self, time: Timestamp) {
        if self.state == State::Waiting {
            self.until = self.until.max(Some(time));
        }
    }

    /// Ends the session in order and opens no other.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        match self.state {
            State::Open => self.state = State::Draining,
            State::Draining | State::Closing => {}
            State::Connecting | State::Greeting => {
                self.command = Some(LinkCommand::Abort);
                self.enter(State::Stopped, None);
            }
            State::Waiting | State::Stopped => self.enter(State::Stopped, None),
        }
    }

    /// Takes a frame of the server. Returns it for the rest of the agent.
    ///
    /// # Errors
    /// How the server broke the protocol: the session is over.
    pub(crate) fn handle_frame(
        &mut self,
        now: Timestamp,
        frame: v1::ReconcileResponse,
    ) -> Result<Option<Frame>, String> {
        let (came, expected) = (frame.sequence, self.sequence_in + 1);
        if came != expected {
            return Err(format!("frame {came} came where {expected} was due"));
        }
        self.sequence_in = expected;
        let is_open = self.session.is_some();
        if !is_open && self.state != State::Greeting {
            return Ok(None);
        }
        if let Some(session) = &mut self.session {
            session.heard = now;
        }
        match &frame.frame {
            Some(Frame::Welcome(_)) if is_open => return Err("a second Welcome came".into()),
            Some(Frame::Welcome(welcome)) => self.welcome(now, welcome)?,
            Some(_) | None if !is_open => return Err("the first frame is not a Welcome".into()),
            Some(Frame::Batches(batches)) => self.check_batches(&batches.batches)?,
            Some(Frame::Drain(drain)) => self.drain(drain),
            Some(
                Frame::Resync(_)
                | Frame::Rejection(_)
                | Frame::Heartbeat(_)
                | Frame::CostsWanted(_),
            )
            | None => {}
        }
        Ok(frame.frame)
    }

    /// Does what is due at `now`. Returns the cause if the connection must end.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) -> Option<Disconnect> {
        if self.until.is_none_or(|until| until > now) {
            let is_silent = self.session.as_mut()?.handle_timeout(now);
            return is_silent.then(|| Disconnect::Lost("the server is silent".into()));
        }
        let text = match self.state {
            State::Connecting => "connecting took too long",
            State::Greeting => "the server sent no Welcome",
            State::Draining => "the server did not take the last outcomes in time",
            State::Closing => return Some(Disconnect::Ended),
            State::Waiting | State::Open | State::Stopped => return None,
        };
        Some(Disconnect::Lost(text.into()))
    }

    /// Returns what to do with the connection. `settled` means that no session has work or frames left.
    pub(crate) fn poll_command(&mut self, now: Timestamp, settled: bool) -> Option<LinkCommand> {
        if let Some(command) = self.command.take() {
            return Some(command);
        }
        if self.state == State::Draining && self.until.is_none() {
            self.until = Some(after(now, DRAINING_MAX));
        }
        if settled && self.state == State::Waiting && self.until <= Some(now) {
            self.sessions.take(now);
            self.enter(State::Connecting, Some(after(now, GREETING_MAX)));
            return Some(LinkCommand::Connect);
        }
        if settled && self.state == State::Draining {
            let until = self.until.into_iter().chain([after(now, CLOSING_MAX)]);
            self.enter(State::Closing, until.min());
            return Some(LinkCommand::Close);
        }
        None
    }

    /// The link's own next frame: the Hello, or a heartbeat after a long pause.
    pub(crate) fn poll_own_frame(
        &mut self,
        view_age: Option<Duration>,
    ) -> Option<reconcile_request::Frame> {
        if !self.has_own_frame() {
            return None;
        }
        if std::mem::take(&mut self.hello_due) {
            let hello = v1::Hello {
                protocol_min: PROTOCOL,
                protocol_max: PROTOCOL,
                resumes_session_id: self.session_last.clone(),
                ..self.hello.clone()
            };
            return Some(reconcile_request::Frame::Hello(hello));
        }
        let view_age = view_age.and_then(|age| age.try_into().ok());
        let heartbeat = v1::Heartbeat {
            last_sequence: self.sequence_in,
            view_age,
        };
        Some(reconcile_request::Frame::Heartbeat(heartbeat))
    }

    pub(crate) fn has_own_frame(&self) -> bool {
        let session = self.session.as_ref();
        self.hello_due || session.is_some_and(|session| session.heartbeat_due)
    }

    /// Numbers a frame that is about to be sent.
    pub(crate) fn number(
        &mut self,
        now: Timestamp,
        frame: reconcile_request::Frame,
    ) -> v1::ReconcileRequest {
        self.sequence_out += 1;
        if let Some(session) = &mut self.session {
            session.sent = now;
            session.heartbeat_due = false;
        }
        v1::ReconcileRequest {
            sequence: self.sequence_out,
            frame: Some(frame),
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) or a poll is due. A link that is not settled waits for its work, not for the
    /// time.
    pub(crate) fn poll_timeout(&self, settled: bool) -> Option<Timestamp> {
        if self.state == State::Waiting && !settled {
            return None;
        }
        let session = self.session.as_ref().map(Session::poll_timeout);
        session.into_iter().chain(self.until).min()
    }

    /// Returns whether new operations may start.
    pub(crate) fn takes_work(&self) -> bool {
        self.state == State::Open
    }

    /// Returns whether the link has ended after [`stop`](Self::stop).
    pub(crate) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }

    /// Begins a state without a session.
    fn enter(&mut self, state: State, until: Option<Timestamp>) {
        (self.state, self.until) = (state, until);
        (self.session, self.hello_due) = (None, false);
    }

    fn welcome(&mut self, now: Timestamp, welcome: &v1::Welcome) -> Result<(), String> {
        if welcome.protocol != PROTOCOL || welcome.session_id.is_empty() {
            return Err(format!("the Welcome names protocol {}", welcome.protocol));
        }
        // The next server may be another one, and would refuse a Hello with an odd id, for as long as this process runs.
        let id = &welcome.session_id;
        let is_printable = id.bytes().all(|it| (b' '..=b'~').contains(&it));
        self.session_last.clear();
        if is_printable && id.len() <= SESSION_ID_BYTES_MAX {
            self.session_last.push_str(id);
        }
        self.opened = Some(now);
        self.enter(State::Open, None);
        self.session = Some(Session::new(now, welcome));
        Ok(())
    }

    /// Checks that the numbers of batches grow: an outcome names its batch by number alone.
    fn check_batches(&mut self, batches: &[v1::Batch]) -> Result<(), String> {
        if batches.len() > BATCHES_MAX {
            return Err(format!("a frame has {} batches", batches.len()));
        }
        for batch in batches {
            if batch.id <= self.batch_last {
                let (id, last) = (batch.id, self.batch_last);
                return Err(format!("batch {id} came after batch {last}"));
            }
            self.batch_last = batch.id;
        }
        Ok(())
    }

    /// Begins to drain. The server keeps the deadline, by its own clock.
    fn drain(&mut self, drain: &v1::Drain) {
        let wait = drain.reconnect_after;
        let wait: Option<Duration> = wait.and_then(|wait| wait.try_into().ok());
        self.reconnect_after = wait.unwrap_or_default().min(WAIT_MAX);
        if self.state == State::Open {
            self.state = State::Draining;
        }
    }
}

/// The heartbeat interval that a server requests, within bounds.
fn heartbeat(asked: Option<prost_types::Duration>) -> Duration {
    asked
        .and_then(|asked| Duration::try_from(asked).ok())
        .filter(|asked| !asked.is_zero())
        .unwrap_or(HEARTBEAT_DEFAULT)
        .clamp(*HEARTBEAT.start(), *HEARTBEAT.end())
}

/// The operations in flight that a server allows, within bounds; 0 allows any number.
pub(crate) fn operations_in_flight(allowed: i32) -> usize {
    match usize::try_from(allowed) {
        Ok(allowed @ 1..) => allowed.min(OPERATIONS_IN_FLIGHT_MAX),
        Ok(0) | Err(_) => OPERATIONS_IN_FLIGHT_MAX,
    }
}

#[cfg(test)]
mod tests;
