//! A session, recorded or not.

use std::{mem, ops::Deref, sync::Arc, time::Duration};

use decree_api::v1;
use decree_core::{Ledger, Timestamp};
use server_session::recording::{Call, Encoder, EndReason};
use server_session::{IncomingFrame, Now, Session, SessionReport};

use super::{
    ring,
    writer::{Ended, Queue, Records},
};

/// Records the calls of one session.
#[derive(Debug)]
pub(crate) struct SessionRecording {
    id: u64,
    queue: Queue,
    encoder: Encoder,
    /// The first records, until the recording begins.
    opening: Vec<u8>,
    ended: Ended,
}

/// A session, and its recording while there is one. Queries reach the session directly; the recording ends on drop.
#[derive(Debug)]
pub(crate) struct RecordedSession {
    session: Session,
    recording: Option<SessionRecording>,
}

impl RecordedSession {
    pub(crate) const fn new(session: Session, recording: Option<SessionRecording>) -> Self {
        Self { session, recording }
    }

    pub(crate) fn inherit(&mut self, now: Now, left: Ledger, ago: Duration) {
        self.record(now, Call::Inherit(&left, ago));
        self.session.inherit(now, left, ago);
    }

    /// Records the frame whole, with its first part.
    pub(crate) fn handle_part(
        &mut self,
        now: Now,
        frame: &IncomingFrame,
        pauses: &dyn Fn() -> bool,
    ) -> bool {
        if !self.session.is_within_frame() {
            self.record(now, Call::Frame(frame));
        }
        self.session.handle_part(now, frame, pauses)
    }

    pub(crate) fn handle_closed(&mut self, now: Now) {
        self.record(now, Call::Closed);
        self.session.handle_closed(now);
    }

    pub(crate) fn handle_drain(&mut self, now: Now) {
        self.record(now, Call::Drain);
        self.session.handle_drain(now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Now) {
        self.record(now, Call::Timeout);
        self.session.handle_timeout(now);
    }

    pub(crate) fn poll_frame(&mut self, now: Now) -> Option<v1::ReconcileResponse> {
        let frame = self.session.poll_frame(now);
        self.record(now, Call::Poll(frame.as_ref()));
        frame
    }

    pub(crate) fn poll_report(&mut self) -> Option<SessionReport> {
        self.session.poll_report()
    }

    /// Appends the last record. Nothing is recorded after it.
    pub(crate) fn end_recording(&mut self) {
        if let Some(recording) = self.recording.take() {
            let mut last = Vec::new();
            server_session::recording::end(EndReason::Session, Some(&self.session), &mut last);
            recording.send(None, last);
            recording.end(EndReason::Session);
        }
    }

    fn record(&mut self, now: Now, call: Call<'_>) {
        let Some(recording) = &mut self.recording else {
            return;
        };
        let mut records = Vec::new();
        recording.encoder.call(now, call, &mut records);
        recording.send(None, records);
        if recording.ended.get().is_some() {
            self.recording = None;
        }
    }
}

impl SessionRecording {
    pub(super) fn new(id: u64, queue: Queue, encoder: Encoder, opening: Vec<u8>) -> Self {
        Self {
            id,
            queue,
            encoder,
            opening,
            ended: Ended::default(),
        }
    }

    /// Starts to write the recording. If too many records wait, the session goes unrecorded.
    pub(crate) fn begin(&mut self, started: Timestamp, session_id: &str) {
        let name = ring::name(started, session_id);
        let opening = mem::take(&mut self.opening);
        self.send(Some((name, Arc::clone(&self.ended))), opening);
    }

    /// Sends records to the writer, unless the recording has ended. It ends if too many records wait.
    fn send(&self, begins: Option<(String, Ended)>, bytes: Vec<u8>) {
        let of = self.id;
        if self.ended.get().is_none() && !self.queue.send(Records { of, begins, bytes }) {
            self.end(EndReason::Behind);
        }
    }

    fn end(&self, reason: EndReason) {
        // The first reason stays.
        let _ = self.ended.set(reason);
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
