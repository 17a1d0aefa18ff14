//! The limits of a server for its sessions.

use std::{borrow::Cow, time::Duration};

use decree_core::Span;

/// The limits and intervals of a session, which its Welcome names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The version of the server.
    pub server_version: Cow<'static, str>,
    /// The largest frame in either direction, in bytes. The transport enforces it; the session refuses a burst that would not fit.
    pub frame_bytes_max: usize,
    /// The maximum number of pods and ReplicaSets of the session.
    pub objects_max: usize,
    /// The maximum memory of the session in bytes, as [`crate::Stats`] counts it.
    pub bytes_max: usize,
    /// The maximum number of operations without an outcome.
    pub operations_in_flight_max: usize,
    /// The longest delay between two attempts for a ReplicaSet whose writes are refused.
    pub backoff_max: Duration,
    /// How long either side is silent before it sends a heartbeat; above 0.
    pub heartbeat_interval: Duration,
    /// How long after a Drain the session may finish operations in flight.
    pub drain_deadline: Duration,
    /// How long a drained agent must wait before it comes back.
    pub reconnect_after: Duration,
}

/// The size in bytes from which a frame takes no further batch. A frame is larger by one batch at most.
pub(crate) const FRAME_BYTES: usize = 64 << 10;

/// The number of heartbeat intervals without a frame that ends a session.
const SILENT_INTERVALS: u32 = 4;

impl Config {
    /// How long the agent may be silent.
    pub fn patience(&self) -> Duration {
        self.heartbeat_interval * SILENT_INTERVALS
    }
}

/// Converts a duration; more than 292 years saturate.
pub(crate) fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
