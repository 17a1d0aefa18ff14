//! What a server grants its sessions.

use std::{borrow::Cow, time::Duration};

use server_core::Span;

/// The bounds and intervals of a session, which its Welcome names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the server calls its version.
    pub server_version: Cow<'static, str>,
    /// The largest frame either way, in bytes. The transport holds it; a burst that would not fit is refused here.
    pub frame_bytes_max: usize,
    /// The pods and ReplicaSets that the session may hold.
    pub objects_max: usize,
    /// The bytes that what the session holds may take, as [`crate::Stats`] counts them.
    pub bytes_max: usize,
    /// The operations that may be without an outcome.
    pub operations_in_flight_max: usize,
    /// The longest delay between two tries of a ReplicaSet whose writes are refused.
    pub backoff_max: Duration,
    /// How long either side is silent before it sends a heartbeat; above 0.
    pub heartbeat_interval: Duration,
    /// How long after a Drain the session may finish what is in flight.
    pub drain_deadline: Duration,
    /// How long a drained agent is told to wait before it comes back.
    pub reconnect_after: Duration,
}

/// How many heartbeat intervals without a frame end a session.
const SILENT_INTERVALS: u32 = 4;

// === impl Config ===

impl Config {
    /// Returns how long the agent may be silent.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.heartbeat_interval * SILENT_INTERVALS
    }
}

/// Returns a duration as the core has it; one beyond 292 years is that long.
pub(crate) fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
