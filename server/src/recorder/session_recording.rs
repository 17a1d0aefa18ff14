//! A session, recorded or not.

use std::{ops::Deref, sync::Arc, sync::atomic::AtomicUsize};

use decree::v1;
use server_recording::{Encoder, EndReason};
use server_session::{Config, IncomingFrame, Now, Session, SessionReport};

use super::buffer::Buffer;

/// Records the calls of one session into its buffer.
#[derive(Debug)]
pub(crate) struct SessionRecording {
    buffer: Arc<Buffer>,
    encoder: Encoder,
}

/// A session, and its recording while there is one. Queries reach the session directly; the recording ends on drop.
#[derive(Debug)]
pub(crate) struct RecordedSession {
    session: Session,
    recording: Option<SessionRecording>,
}

// === impl SessionRecording ===

impl SessionRecording {
    pub(super) fn new(
        waiting: Arc<AtomicUsize>,
        now: Now,
        config: &Config,
        session_id: &str,
        hello: &v1::ReconcileRequest,
    ) -> Self {
        let buffer = Buffer::new(waiting);
        let begin = |out: &mut Vec<u8>| Encoder::begin(now, config, session_id, hello, out);
        let (encoder, _) = buffer.append(begin);
        Self {
            buffer: Arc::new(buffer),
            encoder,
        }
    }

    pub(super) fn buffer(&self) -> Arc<Buffer> {
        Arc::clone(&self.buffer)
    }

    /// Takes the first bytes of a recording.
    pub(super) fn opening(&self) -> Vec<u8> {
        self.buffer.take().bytes
    }

    /// Ends a recording without a file.
    pub(super) fn give_up(&self) {
        self.buffer.end(EndReason::Behind);
    }
}

// === impl RecordedSession ===

impl RecordedSession {
    pub(crate) const fn new(session: Session, recording: Option<SessionRecording>) -> Self {
        Self { session, recording }
    }

    pub(crate) fn handle_frame(&mut self, now: Now, frame: IncomingFrame) {
        self.record(|encoder, out| encoder.frame(now, &frame, out));
        self.session.handle_frame(now, frame);
    }

    pub(crate) fn handle_closed(&mut self, now: Now) {
        self.record(|encoder, out| {
            encoder.closed(now, out);
            true
        });
        self.session.handle_closed(now);
    }

    pub(crate) fn handle_drain(&mut self, now: Now) {
        self.record(|encoder, out| {
            encoder.drain(now, out);
            true
        });
        self.session.handle_drain(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.record(|encoder, out| {
            encoder.timeout(now, out);
            true
        });
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

    fn end_recording(&mut self) {
        let Some(SessionRecording { buffer, .. }) = self.recording.take() else {
            return;
        };
        let session = &self.session;
        buffer.append(|out| server_recording::end(EndReason::Session, Some(session), out));
        buffer.end(EndReason::Session);
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
