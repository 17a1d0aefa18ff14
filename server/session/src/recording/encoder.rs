//! Writes a recording into the caller's buffer.

use std::time::Duration;

use crate::{Config, IncomingFrame, Now, Session};
use decree_api::{
    recording::v1::{Closed, Drain, End, Header, SessionConfig, Timeout},
    v1,
};
use decree_core::Ledger;
use prost::Message;

pub use decree_api::recording::v1::EndReason;

use crate::recording::{
    inherited,
    record::{Poll, Record, Step},
};

/// The first line of a recording: the name and the version of the format.
pub(crate) const MAGIC: &[u8] = b"decree recording 1\n";
/// A call of a session.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// The session inherits these lost creates, of a session that ended this long ago.
    Inherit(&'a Ledger, Duration),
    /// A frame of the agent.
    Frame(&'a IncomingFrame),
    /// Time passed.
    Timeout,
    /// The server begins to drain.
    Drain,
    /// The end of the agent's half of the stream.
    Closed,
    /// A request for a frame, and its answer.
    Poll(Option<&'a v1::ReconcileResponse>),
}

/// Writes the calls of one session. Each method appends a whole record to `out`.
#[derive(Debug)]
pub struct Encoder {
    /// The time of the latest record.
    last: Now,
}

impl Encoder {
    /// Begins the recording of the session that [`Session::open`] makes from the same arguments.
    #[must_use]
    pub fn begin(
        now: Now,
        config: &Config,
        session_id: &str,
        hello: &v1::ReconcileRequest,
        out: &mut Vec<u8>,
    ) -> Self {
        out.extend_from_slice(MAGIC);
        let header = Header {
            server_version: config.server_version.clone().into_owned(),
            session_id: session_id.to_owned(),
            config: Some(session_config(config)),
            wall_nanos: now.wall.0,
            monotonic_nanos: nanos(now.monotonic),
            hello: Some(hello.clone()),
        };
        append(&header, out);
        Self { last: now }
    }

    /// Records a call.
    pub fn call(&mut self, now: Now, call: Call<'_>, out: &mut Vec<u8>) {
        let step = match call {
            Call::Inherit(left, ago) => Step::Inherited(inherited::record(left, ago)),
            Call::Frame(frame) => Step::Frame(frame.as_bytes().clone()),
            Call::Timeout => Step::Timeout(Timeout {}),
            Call::Drain => Step::Drain(Drain {}),
            Call::Closed => Step::Closed(Closed {}),
            Call::Poll(frame) => {
                let frame = frame.map(|frame| frame.encode_to_vec().into());
                Step::Poll(Poll { frame })
            }
        };
        let elapsed = nanos(now.monotonic.saturating_sub(self.last.monotonic));
        let wall = now.wall.0.saturating_sub(self.last.wall.0);
        self.last = now;
        let record = Record {
            elapsed_nanos: elapsed,
            drift_nanos: wall.saturating_sub_unsigned(elapsed),
            step: Some(step),
        };
        append(&record, out);
    }
}

/// Appends the last record: why the recording ends, and how the session ended, if it did.
pub fn end(reason: EndReason, session: Option<&Session>, out: &mut Vec<u8>) {
    let end = End {
        reason: reason.into(),
        session_end: session.map(session_end).unwrap_or_default(),
    };
    let record = Record {
        step: Some(Step::End(end)),
        ..Record::default()
    };
    append(&record, out);
}

/// Returns how a session ended by its own rules, in words; empty if it has not.
pub(crate) fn session_end(session: &Session) -> String {
    match session.poll_end() {
        None => String::new(),
        Some(crate::End::Closed) => "CLOSED_BY_AGENT".to_owned(),
        Some(crate::End::Refused(refusal)) => format!("{}: {refusal}", refusal.reason()),
    }
}

fn append(message: &impl Message, out: &mut Vec<u8>) {
    let encoded = message.encode_length_delimited(out);
    encoded.expect("a vector takes all");
}

fn session_config(config: &Config) -> SessionConfig {
    let int = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let Config {
        server_version: _,
        frame_bytes_max,
        objects_max,
        bytes_max,
        operations_in_flight_max,
        backoff_max,
        heartbeat_interval,
        drain_deadline,
        reconnect_after,
    } = config;
    SessionConfig {
        frame_bytes_max: int(*frame_bytes_max),
        objects_max: int(*objects_max),
        operations_in_flight_max: int(*operations_in_flight_max),
        heartbeat_interval_nanos: nanos(*heartbeat_interval),
        drain_deadline_nanos: nanos(*drain_deadline),
        reconnect_after_nanos: nanos(*reconnect_after),
        work_per_poll: 0,
        backoff_max_nanos: nanos(*backoff_max),
        bytes_max: match *bytes_max {
            usize::MAX => 0,
            max => int(max),
        },
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
