//! A session that is open, and the signs of life on it.

use std::time::Duration;

use decree::v1;
use jiff::Timestamp;

use super::bounds;
use crate::pace::after;

/// How many heartbeat intervals without any frame end the session (docs/protocol.md).
const SILENT_INTERVALS: u32 = 4;

/// A session that is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    /// The server's name for it.
    pub(crate) id: String,
    /// The server's limits.
    pub(crate) limits: v1::Limits,
    heartbeat: Duration,
    pub(super) heartbeat_due: bool,
    sent: Timestamp,
    pub(super) heard: Timestamp,
}

impl Session {
    pub(super) fn new(now: Timestamp, welcome: &v1::Welcome) -> Self {
        Self {
            id: welcome.session_id.clone(),
            limits: welcome.limits.unwrap_or_default(),
            heartbeat: bounds::heartbeat(welcome.heartbeat_interval),
            heartbeat_due: false,
            sent: now,
            heard: now,
        }
    }

    pub(super) const fn note_sent(&mut self, now: Timestamp) {
        self.sent = now;
        self.heartbeat_due = false;
    }

    /// True if the server has been silent for too long. Otherwise, a heartbeat becomes due after a long pause in sending.
    ///
    /// A heartbeat that cannot be sent yet does not become due twice, so a blocked connection causes no busy loop.
    pub(super) fn handle_timeout(&mut self, now: Timestamp) -> bool {
        if self.heartbeat_at() <= now {
            self.heartbeat_due = true;
            self.sent = now;
        }
        self.silent_at() <= now
    }

    pub(super) fn poll_timeout(&self) -> Timestamp {
        self.heartbeat_at().min(self.silent_at())
    }

    fn heartbeat_at(&self) -> Timestamp {
        after(self.sent, self.heartbeat)
    }

    fn silent_at(&self) -> Timestamp {
        after(self.heard, self.heartbeat.saturating_mul(SILENT_INTERVALS))
    }
}
