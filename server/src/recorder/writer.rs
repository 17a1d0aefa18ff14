//! The thread that writes recordings down.

use std::{
    fs::File,
    io::Write,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use server_recording::EndReason;

use super::{
    buffer::{Buffer, BufferState, Command},
    ring::Ring,
};
use crate::metrics::Metrics;

/// How often buffers are written; what a killed server loses is at most this much.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// What is kept free in each recording for its last mark.
const MARK_BYTES: u64 = 64;

/// All recordings that have not ended.
#[derive(Debug)]
pub(super) struct Writer {
    ring: Ring,
    metrics: Metrics,
    open: Vec<OpenRecording>,
    /// When buffers are written next.
    due: Instant,
}

/// A recording that goes on.
#[derive(Debug)]
struct OpenRecording {
    path: PathBuf,
    file: File,
    length: u64,
    buffer: Arc<Buffer>,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(ring: Ring, metrics: Metrics) -> Self {
        Self {
            ring,
            metrics,
            open: Vec::new(),
            due: Instant::now(),
        }
    }

    /// Writes until it is told to finish.
    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            match self.next(commands) {
                Ok(Command::Begin(name, opening, buffer)) => self.begin(&name, &opening, buffer),
                Err(RecvTimeoutError::Timeout) => self.write(),
                Ok(Command::Finish) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.write();
        for recording in std::mem::take(&mut self.open) {
            self.end(recording, EndReason::Session);
        }
    }

    /// Waits for a command, where recordings go on until they are to be written.
    fn next(&self, commands: &Receiver<Command>) -> Result<Command, RecvTimeoutError> {
        if self.open.is_empty() {
            return commands.recv().map_err(RecvTimeoutError::from);
        }
        let wait = self.due.saturating_duration_since(Instant::now());
        commands.recv_timeout(wait)
    }

    fn begin(&mut self, name: &str, opening: &[u8], buffer: Arc<Buffer>) {
        match self.ring.create(name) {
            Ok(Some((path, file))) => {
                let mut recording = OpenRecording {
                    path,
                    file,
                    length: 0,
                    buffer,
                };
                match self.append(&mut recording, opening) {
                    Ok(()) => self.open.push(recording),
                    Err(reason) => self.end(recording, reason),
                }
            }
            Ok(None) => {
                buffer.end(EndReason::Full);
                self.report(name, EndReason::Full);
            }
            Err(error) => {
                buffer.end(EndReason::Failed);
                tracing::warn!(file = name, %error, "recording not begun");
                self.report(name, EndReason::Failed);
            }
        }
    }

    fn write(&mut self) {
        self.due = Instant::now() + WRITE_EVERY;
        for mut recording in std::mem::take(&mut self.open) {
            let BufferState { bytes, ended } = recording.buffer.take();
            let written = self.append(&mut recording, &bytes);
            match written.err().or(ended) {
                None => self.open.push(recording),
                Some(reason) => self.end(recording, reason),
            }
        }
    }

    /// Appends whole records; if it fails, the file is as it was, as far as its disk allows.
    fn append(&mut self, recording: &mut OpenRecording, bytes: &[u8]) -> Result<(), EndReason> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = recording.length + bytes.len() as u64;
        let with_mark = length + MARK_BYTES;
        if with_mark > self.ring.share() || !self.ring.grow(recording.room(), with_mark) {
            return Err(EndReason::Full);
        }
        if let Err(error) = recording.file.write_all(bytes) {
            tracing::warn!(file = %recording.path.display(), %error, "recording cannot be written");
            // What was written of the last record reads as torn, if it cannot be cut off.
            let _ = recording.file.set_len(recording.length);
            return Err(EndReason::Failed);
        }
        recording.length = length;
        self.metrics.recorded_bytes.inc_by(bytes.len() as u64);
        Ok(())
    }

    /// Ends a recording; where the session has not written the mark, it is written here.
    fn end(&mut self, mut recording: OpenRecording, reason: EndReason) {
        recording.buffer.end(reason);
        if reason != EndReason::Session {
            let mut mark = Vec::new();
            server_recording::end(reason, None, &mut mark);
            // Without it the recording ends unmarked.
            let _ = recording.file.write_all(&mark);
        }
        let room = recording.room();
        self.report(&recording.path.display().to_string(), reason);
        self.ring.end(recording.path, room);
    }

    fn report(&self, file: &str, reason: EndReason) {
        let word = match reason {
            EndReason::Unspecified | EndReason::Session => "session",
            EndReason::Full => "full",
            EndReason::Behind => "behind",
            EndReason::Failed => "failed",
        };
        let ends = self
            .metrics
            .recording_ends
            .get_or_create_owned(&[("reason", word)]);
        ends.inc();
        if reason != EndReason::Session {
            tracing::warn!(file, reason = word, "recording ended before its session");
        }
    }
}

// === impl OpenRecording ===

impl OpenRecording {
    /// Returns the length for which the ring has given room.
    const fn room(&self) -> u64 {
        match self.length {
            0 => 0,
            length => length + MARK_BYTES,
        }
    }
}
