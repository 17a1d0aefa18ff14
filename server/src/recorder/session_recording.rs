//! A session, recorded or not.

use std::{ops::Deref, sync::Arc, time::Duration};

use decree::v1;
use server_core::Ledger;
use server_recording::{Encoder, EndReason};
use server_session::{IncomingFrame, Now, Session, SessionReport};

use super::buffer::Buffer;

/// Records the calls of one session into its buffer.
#[derive(Debug)]
pub(crate) struct SessionRecording {
    pub(super) buffer: Arc<Buffer>,
    pub(super) encoder: Encoder,
}

/// A session, and its recording while there is one. Queries reach the session directly; the recording ends on drop.
#[derive(Debug)]
pub(crate) struct RecordedSession {
    session: Session,
    recording: Option<SessionRecording>,
}

// === impl RecordedSession ===

impl RecordedSession {
    pub(crate) const fn new(session: Session, recording: Option<SessionRecording>) -> Self {
        Self { session, recording }
    }

    pub(crate) fn inherit(&mut self, now: Now, left: Ledger, ago: Duration) {
        self.record(|encoder, out| {
            encoder.inherited(now, &left, ago, out);
            true
        });
        self.session.inherit(now, left, ago);
    }

    pub(crate) fn handle_frame(&mut self, now: Now, frame: IncomingFrame) {
        self.record(|encoder, out| encoder.frame(now, &frame, out));
        self.session.handle_frame(now, frame);
    }

    pub(crate) fn handle_closed(&mut self, now: Now) {
        self.note(now, Encoder::closed);
        self.session.handle_closed(now);
    }

    pub(crate) fn handle_drain(&mut self, now: Now) {
        self.note(now, Encoder::drain);
        self.session.handle_drain(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.note(now, Encoder::timeout);
        self.session.handle_timeout(now);
    }

    pub(crate) fn poll_frame(&mut self, now: Now) -> Option<v1::ReconcileResponse> {
        let frame = self.session.poll_frame(now);
        self.record(|encoder, out| encoder.poll(now, frame.as_ref(), out));
        frame
    }

    pub(crate) fn poll_report(&mut self) -> Option<SessionReport> {
        self.session.poll_report()
    }

    /// Appends the last record. Nothing is recorded after it.
    pub(crate) fn end_recording(&mut self) {
        if let Some(SessionRecording { buffer, .. }) = self.recording.take() {
            let session = Some(&self.session);
            buffer.append(|out| server_recording::end(EndReason::Session, session, out));
            buffer.end(EndReason::Session);
        }
    }

    fn note(&mut self, now: Now, write: fn(&mut Encoder, Now, &mut Vec<u8>)) {
        self.record(|encoder, out| {
            write(encoder, now, out);
            true
        });
    }

    /// Appends a record. If `write` returns `false`, the recording ends.
    fn record(&mut self, write: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> bool) {
        let Some(SessionRecording { buffer, encoder }) = &mut self.recording else {
            return;
        };
        let (taken, goes_on) = buffer.append(|out| write(encoder, out));
        if !taken {
            buffer.end(EndReason::Full);
        }
        if !taken || !goes_on {
            self.recording = None;
        }
    }
}

/// Reads of the session change nothing, so they are not recorded.
impl Deref for RecordedSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for RecordedSession {
    fn drop(&mut self) {
        self.end_recording();
    }
}
