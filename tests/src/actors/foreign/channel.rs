//! The stream to the server: its opening, its heartbeats, its end.

use std::time::Duration;

use agent_core::link::{Disconnect, LinkCommand};
use decree::v1::{self, reconcile_request as request, reconcile_response as response};
use jiff::Timestamp;

/// The timeout for the Welcome.
const WELCOME_WITHIN: Duration = Duration::from_secs(10);
/// The delay before the next attempt.
const RETRY_AFTER: Duration = Duration::from_millis(300);
/// The number of silent intervals that end a session.
const SILENT_INTERVALS: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Channel {
    numbers_frames: bool,
    hello: v1::Hello,
    state: State,
    command: Option<LinkCommand>,
    /// The frames so far, in each direction.
    sent: u64,
    received: u64,
    /// The times of the last sent and the last received frame.
    spoke: Timestamp,
    heard: Timestamp,
    interval: Duration,
    reconnect_after: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Without a stream.
    Waiting { until: Timestamp },
    /// The stream is opening.
    Connecting,
    /// The stream is open, without a Welcome.
    Greeting { hello_sent: bool },
    /// The session is open.
    Open { session: String },
    /// The session is open, and the server drains.
    Draining { session: String },
    /// This half is closed.
    Closed,
}

/// The meaning of a server frame for the rest of the agent.
#[derive(Clone, Debug)]
pub(super) enum News {
    Welcome,
    Batches(Vec<v1::Batch>),
    Resync(v1::Kind),
    Drain,
    Nothing,
    Violation(String),
}

// === impl Channel ===

impl Channel {
    pub(super) fn new(now: Timestamp, hello: v1::Hello, numbers_frames: bool) -> Self {
        Self {
            numbers_frames,
            hello,
            state: State::Waiting { until: now },
            command: None,
            sent: 0,
            received: 0,
            spoke: now,
            heard: now,
            interval: WELCOME_WITHIN / SILENT_INTERVALS,
            reconnect_after: Duration::ZERO,
        }
    }

    pub(super) fn handle_connected(&mut self, now: Timestamp) {
        (self.sent, self.received, self.heard) = (0, 0, now);
        self.interval = WELCOME_WITHIN / SILENT_INTERVALS;
        self.state = State::Greeting { hello_sent: false };
    }

    pub(super) fn handle_disconnected(&mut self, now: Timestamp, cause: &Disconnect) {
        let asked = match cause {
            Disconnect::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            Disconnect::Ended
            | Disconnect::Lost(_)
            | Disconnect::WentBack(_)
            | Disconnect::Superseded(_) => Duration::ZERO,
        };
        let wait = RETRY_AFTER.max(asked).max(self.reconnect_after);
        self.reconnect_after = Duration::ZERO;
        self.state = State::Waiting { until: now + wait };
    }

    pub(super) fn abort(&mut self, now: Timestamp) {
        self.handle_disconnected(now, &Disconnect::Ended);
        self.command = Some(LinkCommand::Abort);
    }

    pub(super) fn handle_frame(&mut self, now: Timestamp, frame: v1::ReconcileResponse) -> News {
        self.heard = now;
        self.received += 1;
        if frame.sequence != self.received {
            let text = format!("frame {} came as number {}", frame.sequence, self.received);
            return News::Violation(text);
        }
        match (frame.frame, &self.state) {
            (Some(response::Frame::Welcome(welcome)), State::Greeting { .. }) => {
                let interval = welcome.heartbeat_interval.unwrap_or_default();
                self.interval = interval.try_into().unwrap_or_default();
                self.state = State::Open {
                    session: welcome.session_id,
                };
                News::Welcome
            }
            (_, State::Greeting { .. }) => {
                News::Violation("the first frame is not a Welcome".to_owned())
            }
            (Some(response::Frame::Welcome(_)), _) => {
                News::Violation("a second Welcome came".to_owned())
            }
            (Some(response::Frame::Drain(drain)), State::Open { session }) => {
                let wait = drain.reconnect_after.unwrap_or_default();
                self.reconnect_after = wait.try_into().unwrap_or_default();
                let session = session.clone();
                self.state = State::Draining { session };
                News::Drain
            }
            (Some(response::Frame::Batches(it)), _) => News::Batches(it.batches),
            (Some(response::Frame::Resync(it)), _) => News::Resync(it.kind()),
            (
                Some(
                    response::Frame::Drain(_)
                    | response::Frame::Heartbeat(_)
                    | response::Frame::Rejection(_),
                )
                | None,
                _,
            ) => News::Nothing,
        }
    }

    /// The next action on the connection. `settled`: no call of an earlier session is in flight or may take effect later. `done`:
    /// no report is left.
    pub(super) fn poll_command(
        &mut self,
        now: Timestamp,
        settled: bool,
        done: bool,
    ) -> Option<LinkCommand> {
        if let Some(command) = self.command.take() {
            return Some(command);
        }
        match self.state {
            State::Waiting { until } if until <= now && settled => {
                self.state = State::Connecting;
                Some(LinkCommand::Connect)
            }
            State::Draining { .. } if done => {
                self.state = State::Closed;
                Some(LinkCommand::Close)
            }
            State::Waiting { .. }
            | State::Connecting
            | State::Greeting { .. }
            | State::Open { .. }
            | State::Draining { .. }
            | State::Closed => None,
        }
    }

    /// The Hello, or a heartbeat if one is due.
    pub(super) fn poll_own_frame(&mut self, now: Timestamp) -> Option<request::Frame> {
        match &mut self.state {
            State::Greeting { hello_sent } if !*hello_sent => {
                *hello_sent = true;
                Some(request::Frame::Hello(self.hello.clone()))
            }
            State::Open { .. } | State::Draining { .. } if self.spoke + self.interval <= now => {
                Some(request::Frame::Heartbeat(v1::Heartbeat {
                    last_sequence: self.received,
                    view_age: None,
                }))
            }
            State::Greeting { .. }
            | State::Open { .. }
            | State::Draining { .. }
            | State::Waiting { .. }
            | State::Connecting
            | State::Closed => None,
        }
    }

    /// Numbers an outgoing frame.
    pub(super) fn send(&mut self, now: Timestamp, frame: request::Frame) -> v1::ReconcileRequest {
        self.sent += 1;
        self.spoke = now;
        v1::ReconcileRequest {
            sequence: if self.numbers_frames { self.sent } else { 0 },
            frame: Some(frame),
        }
    }

    /// Whether the silence of the server has ended the session.
    pub(super) fn is_silent(&self, now: Timestamp) -> bool {
        self.is_up() && self.silent_at() <= now
    }

    /// The future deadlines. An overdue deadline waits for something else.
    pub(super) fn poll_timeouts(&self) -> impl Iterator<Item = Timestamp> {
        let due = match &self.state {
            State::Waiting { until } => [Some(*until), None],
            State::Open { .. } | State::Draining { .. } => {
                [Some(self.silent_at()), Some(self.spoke + self.interval)]
            }
            State::Greeting { .. } | State::Closed => [Some(self.silent_at()), None],
            State::Connecting => [None, None],
        };
        due.into_iter().flatten()
    }

    /// The open session, draining or not.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.state {
            State::Open { session } | State::Draining { session } => Some(session),
            State::Waiting { .. } | State::Connecting | State::Greeting { .. } | State::Closed => {
                None
            }
        }
    }

    /// Whether frames of lists, changes and outcomes may leave.
    pub(super) const fn takes_frames(&self) -> bool {
        match self.state {
            State::Greeting { hello_sent } => hello_sent,
            State::Open { .. } | State::Draining { .. } => true,
            State::Waiting { .. } | State::Connecting | State::Closed => false,
        }
    }

    pub(super) const fn is_draining(&self) -> bool {
        matches!(self.state, State::Draining { .. } | State::Closed)
    }

    const fn is_up(&self) -> bool {
        !matches!(self.state, State::Waiting { .. } | State::Connecting)
    }

    fn silent_at(&self) -> Timestamp {
        self.heard + self.interval * SILENT_INTERVALS
    }
}
