//! The connection to the server: when to open it, how a session begins on it, how both sides know that the other lives, and how
//! it ends.
//!
//! ```text
//! Waiting ──settled──▶ Connecting ──connected──▶ Greeting ──Welcome──▶ Open ──Drain | stop──▶ Draining ──empty──▶ Closing
//!    ▲ backoff               │ lost                 │ lost                │ lost                                     │
//!    └───────────────────────┴──────────────────────┴─────────────────────┴──────────────── ended ───────────────────┘
//! ```
//! **Invariant:** a Hello is sent only when no call of an earlier session is in flight: the snapshot that follows contains its writes.

use std::time::Duration;

use decree::v1::{self, reconcile_request, reconcile_response::Frame};
use jiff::Timestamp;

pub use disconnect::{Disconnect, Successor};
pub use session::Session;

use crate::{
    backoff::{Backoff, after, since},
    token_bucket::TokenBucket,
};

pub(crate) mod bounds;
mod disconnect;
mod session;

/// The protocol that this agent speaks.
const PROTOCOL: i32 = 1;
/// How long a connection or a Welcome may take.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// How long the server may take to end the stream after the agent closed its half.
const CLOSING_MAX: Duration = Duration::from_secs(5);

/// The shortest wait of a superseded agent. Without the wait, two agents would end each other's sessions in turn. An agent that is being
/// replaced stops before that.
const SUPERSEDED_WAIT_MIN: Duration = Duration::from_secs(60);
/// The longest of these waits, which double. A session of this length ends the doubling.
const SUPERSEDED_WAIT_MAX: Duration = Duration::from_secs(16 * 60);

/// The interval of session attempts, and their burst, however a server ends the sessions.
const SESSIONS_EVERY: Duration = Duration::from_secs(1);
const SESSIONS_AT_ONCE: u32 = 3;

/// The settings of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The first frame of each session, without `resumes_session_id`.
    pub hello: v1::Hello,
    /// The shortest wait before reconnecting.
    pub backoff_min: Duration,
    /// The longest wait before reconnecting.
    pub backoff_max: Duration,
    /// The seed of the jitter.
    pub seed: u64,
}

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

/// The meaning of a server's frame for the rest of the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    Opened,
    Batches(Vec<v1::Batch>),
    Resync(v1::Resync),
    Drain,
    Rejection(v1::Rejection),
    Nothing,
    /// The server broke the protocol; the session is over.
    Violation(String),
}

/// The state of the connection. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    backoff: Backoff,
    superseded: Backoff,
    sessions: TokenBucket,
    state: State,
    command: Option<LinkCommand>,
    sequence_out: u64,
    sequence_in: u64,
    batch_last: u64,
    session_last: String,
    reconnect_after: Duration,
    opened: Option<Timestamp>,
    /// Until when the session drains; `None` before the drain.
    draining_until: Option<Timestamp>,
    stopping: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Waiting {
        until: Timestamp,
    },
    Connecting {
        deadline: Timestamp,
    },
    Greeting {
        deadline: Timestamp,
        hello_sent: bool,
    },
    Open(Session),
    Draining(Session),
    Closing {
        deadline: Timestamp,
    },
    Stopped,
}

// === impl Link ===

impl Link {
    /// Creates a link that connects at once.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self {
            backoff: Backoff::new(config.backoff_min, config.backoff_max, config.seed),
            superseded: Backoff::new(SUPERSEDED_WAIT_MIN, SUPERSEDED_WAIT_MAX, config.seed),
            sessions: TokenBucket::new(SESSIONS_EVERY, SESSIONS_AT_ONCE),
            config,
            state: State::Waiting {
                until: Timestamp::MIN,
            },
            command: None,
            sequence_out: 0,
            sequence_in: 0,
            batch_last: 0,
            session_last: String::new(),
            reconnect_after: Duration::ZERO,
            opened: None,
            draining_until: None,
            stopping: false,
        }
    }

    /// Handles the opening of the stream.
    pub fn handle_connected(&mut self, now: Timestamp) {
        if matches!(self.state, State::Connecting { .. }) {
            (self.sequence_out, self.sequence_in, self.batch_last) = (0, 0, 0);
            let deadline = after(now, GREETING_MAX);
            self.state = State::Greeting {
                deadline,
                hello_sent: false,
            };
        }
    }

    /// Handles the end of the connection. Returns whether there was one.
    pub fn handle_disconnected(&mut self, now: Timestamp, cause: &Disconnect) -> bool {
        if matches!(self.state, State::Waiting { .. } | State::Stopped) {
            return false;
        }
        self.draining_until = None;
        let lived = self.opened.take().map(|opened| since(now, opened));
        if lived >= Some(SUPERSEDED_WAIT_MAX) {
            self.superseded.reset();
        }
        if lived >= Some(self.config.backoff_max) {
            self.backoff.reset();
        }
        let wait = match cause {
            Disconnect::Ended | Disconnect::Lost(_) | Disconnect::WentBack(_) => {
                self.backoff.next_wait()
            }
            Disconnect::Superseded(_) => self.superseded.next_wait(),
            Disconnect::Refused { retry_after, .. } => self
                .backoff
                .longest_wait()
                .max(bounds::wait(retry_after.unwrap_or_default())),
        };
        let wait = wait.max(std::mem::take(&mut self.reconnect_after));
        self.command = None;
        self.state = if self.stopping {
            State::Stopped
        } else {
            State::Waiting {
                until: after(now, wait).max(self.sessions.next(now)),
            }
        };
        true
    }

    /// Ends the connection because the server broke the protocol or is silent. Returns whether there was one.
    pub fn abort(&mut self, now: Timestamp, cause: &Disconnect) -> bool {
        let connected = self.handle_disconnected(now, cause);
        if connected {
            self.command = Some(LinkCommand::Abort);
        }
        connected
    }

    pub(crate) fn hold_until(&mut self, time: Timestamp) {
        if let State::Waiting { until } = &mut self.state {
            *until = (*until).max(time);
        }
    }

    /// Ends the session in order and opens no other.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.state = match std::mem::replace(&mut self.state, State::Stopped) {
            State::Open(session) | State::Draining(session) => State::Draining(session),
            State::Closing { deadline } => State::Closing { deadline },
            State::Connecting { .. } | State::Greeting { .. } => {
                self.command = Some(LinkCommand::Abort);
                State::Stopped
            }
            State::Waiting { .. } | State::Stopped => State::Stopped,
        };
    }

    pub(crate) fn handle_frame(
        &mut self,
        now: Timestamp,
        frame: v1::ReconcileResponse,
    ) -> Incoming {
        let expected = self.sequence_in + 1;
        if frame.sequence != expected {
            let text = format!("frame {} came where {expected} was due", frame.sequence);
            return Incoming::Violation(text);
        }
        self.sequence_in = frame.sequence;
        if let Some(session) = self.session_mut() {
            session.note_heard(now);
            return self.handle_session_frame(frame.frame);
        }
        if !matches!(self.state, State::Greeting { .. }) {
            return Incoming::Nothing;
        }
        match frame.frame {
            Some(Frame::Welcome(welcome)) => self.welcome(now, welcome),
            Some(
                Frame::Batches(_)
                | Frame::Resync(_)
                | Frame::Drain(_)
                | Frame::Heartbeat(_)
                | Frame::Rejection(_),
            )
            | None => Incoming::Violation("the first frame is not a Welcome".into()),
        }
    }

    /// Does what is due at `now`. Returns the cause if the connection must end.
    pub fn handle_timeout(&mut self, now: Timestamp) -> Option<Disconnect> {
        if self.draining_until.is_some_and(|until| until <= now) {
            self.draining_until = None;
            let text = "the server did not take the last outcomes in time";
            return Some(Disconnect::Lost(text.into()));
        }
        if let Some(session) = self.session_mut() {
            let silent = session.handle_timeout(now);
            return silent.then(|| Disconnect::Lost("the server is silent".into()));
        }
        if self.deadline()? > now {
            return None;
        }
        Some(match self.state {
            State::Closing { .. } => Disconnect::Ended,
            State::Greeting { .. } => Disconnect::Lost("the server sent no Welcome".into()),
            State::Waiting { .. }
            | State::Connecting { .. }
            | State::Open(_)
            | State::Draining(_)
            | State::Stopped => Disconnect::Lost("connecting took too long".into()),
        })
    }

    /// Returns what to do with the connection. `settled` means that no session has work or frames left.
    pub fn poll_command(&mut self, now: Timestamp, settled: bool) -> Option<LinkCommand> {
        if let Some(command) = self.command.take() {
            return Some(command);
        }
        if matches!(self.state, State::Draining(_)) && self.draining_until.is_none() {
            self.draining_until = Some(after(now, bounds::DRAINING_MAX));
        }
        if !settled {
            return None;
        }
        if matches!(self.state, State::Waiting { until } if until <= now) {
            self.sessions.take(now);
            self.state = State::Connecting {
                deadline: after(now, GREETING_MAX),
            };
            return Some(LinkCommand::Connect);
        }
        if matches!(self.state, State::Draining(_)) {
            self.state = State::Closing {
                deadline: after(now, CLOSING_MAX),
            };
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
        if let State::Greeting { hello_sent, .. } = &mut self.state {
            *hello_sent = true;
            let resumes_session_id = self.session_last.clone();
            let hello = v1::Hello {
                resumes_session_id,
                ..self.config.hello.clone()
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
        let greets = matches!(
            self.state,
            State::Greeting {
                hello_sent: false,
                ..
            }
        );
        greets || self.session().is_some_and(Session::is_heartbeat_due)
    }

    /// Numbers a frame that is about to be sent.
    pub(crate) fn number(
        &mut self,
        now: Timestamp,
        frame: reconcile_request::Frame,
    ) -> v1::ReconcileRequest {
        self.sequence_out += 1;
        if let Some(session) = self.session_mut() {
            session.note_sent(now);
        }
        v1::ReconcileRequest {
            sequence: self.sequence_out,
            frame: Some(frame),
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) or a poll is due. A link that is not settled waits for its work, not for the
    /// time.
    #[must_use]
    pub fn poll_timeout(&self, settled: bool) -> Option<Timestamp> {
        match &self.state {
            State::Waiting { until } => settled.then_some(*until),
            State::Open(session) | State::Draining(session) => {
                let due = self.draining_until.unwrap_or(Timestamp::MAX);
                Some(session.poll_timeout().min(due))
            }
            State::Connecting { .. }
            | State::Greeting { .. }
            | State::Closing { .. }
            | State::Stopped => self.deadline(),
        }
    }

    /// Returns the session while it is open, draining included.
    #[must_use]
    pub const fn session(&self) -> Option<&Session> {
        match &self.state {
            State::Open(session) | State::Draining(session) => Some(session),
            State::Waiting { .. }
            | State::Connecting { .. }
            | State::Greeting { .. }
            | State::Closing { .. }
            | State::Stopped => None,
        }
    }

    /// Returns the UID that identifies the cluster.
    #[must_use]
    pub fn cluster_uid(&self) -> &str {
        &self.config.hello.cluster_uid
    }

    /// Returns whether new operations may start.
    #[must_use]
    pub const fn takes_work(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Returns whether the link has ended after [`stop`](Self::stop).
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped)
    }

    const fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            State::Open(session) | State::Draining(session) => Some(session),
            State::Waiting { .. }
            | State::Connecting { .. }
            | State::Greeting { .. }
            | State::Closing { .. }
            | State::Stopped => None,
        }
    }

    const fn deadline(&self) -> Option<Timestamp> {
        match self.state {
            State::Connecting { deadline }
            | State::Greeting { deadline, .. }
            | State::Closing { deadline } => Some(deadline),
            State::Waiting { .. } | State::Open(_) | State::Draining(_) | State::Stopped => None,
        }
    }

    fn handle_session_frame(&mut self, frame: Option<Frame>) -> Incoming {
        match frame {
            Some(Frame::Batches(batches)) => self.batches(batches),
            Some(Frame::Drain(drain)) => self.drain(&drain),
            Some(Frame::Resync(resync)) => Incoming::Resync(resync),
            Some(Frame::Rejection(rejection)) => Incoming::Rejection(rejection),
            Some(Frame::Welcome(_)) => Incoming::Violation("a second Welcome came".into()),
            Some(Frame::Heartbeat(_)) | None => Incoming::Nothing,
        }
    }

    fn welcome(&mut self, now: Timestamp, welcome: v1::Welcome) -> Incoming {
        if welcome.protocol != PROTOCOL || welcome.session_id.is_empty() {
            let text = format!("the Welcome names protocol {}", welcome.protocol);
            return Incoming::Violation(text);
        }
        self.session_last.clone_from(&welcome.session_id);
        self.opened = Some(now);
        self.state = State::Open(Session::new(now, welcome));
        Incoming::Opened
    }

    /// Takes batches, whose numbers must grow: an outcome names its batch by number alone.
    fn batches(&mut self, batches: v1::Batches) -> Incoming {
        if batches.batches.len() > bounds::BATCHES_MAX {
            let text = format!("a frame has {} batches", batches.batches.len());
            return Incoming::Violation(text);
        }
        for batch in &batches.batches {
            if batch.id <= self.batch_last {
                let text = format!("batch {} came after batch {}", batch.id, self.batch_last);
                return Incoming::Violation(text);
            }
            self.batch_last = batch.id;
        }
        Incoming::Batches(batches.batches)
    }

    /// Begins to drain. The server keeps the deadline, by its own clock.
    fn drain(&mut self, drain: &v1::Drain) -> Incoming {
        let wait = drain.reconnect_after.and_then(|wait| wait.try_into().ok());
        self.reconnect_after = bounds::wait(wait.unwrap_or_default());
        self.state = match std::mem::replace(&mut self.state, State::Stopped) {
            State::Open(session) => State::Draining(session),
            state @ (State::Waiting { .. }
            | State::Connecting { .. }
            | State::Greeting { .. }
            | State::Draining(_)
            | State::Closing { .. }
            | State::Stopped) => state,
        };
        Incoming::Drain
    }
}

/// Returns a Hello of this protocol version. The caller fills in the agent's fields.
#[must_use]
pub fn hello() -> v1::Hello {
    v1::Hello {
        protocol_min: PROTOCOL,
        protocol_max: PROTOCOL,
        ..v1::Hello::default()
    }
}

#[cfg(test)]
mod tests;
