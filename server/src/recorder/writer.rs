//! The thread that writes recordings.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use server_recording::EndReason;

use super::{
    buffer::{Buffer, WriterCommand},
    ring::Ring,
};
use crate::metrics::Metrics;

/// How often buffers are written. A killed server loses at most this much.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// The space in each recording that is reserved for its final mark.
const MARK_BYTES: u64 = 64;

/// The memory that a recording keeps between two writes. A burst takes more for a while.
const SPARE_BYTES: usize = 64 << 10;

/// All unfinished recordings.
#[derive(Debug)]
pub(super) struct RecordingWriter {
    ring: Ring,
    metrics: Metrics,
    open: Vec<OpenRecording>,
    /// The time of the next write.
    due: Instant,
}

/// Why a recording ends before its session.
#[derive(Debug)]
struct Stop {
    reason: EndReason,
    /// The error of the system, if that is the cause.
    error: Option<io::Error>,
}

/// An unfinished recording.
#[derive(Debug)]
struct OpenRecording {
    path: PathBuf,
    file: File,
    length: u64,
    buffer: Arc<Buffer>,
    /// The last written buffer, emptied, for exchange with the session's buffer.
    spare: Vec<u8>,
}

// === impl RecordingWriter ===

impl RecordingWriter {
    pub(super) fn new(ring: Ring, metrics: Metrics) -> Self {
        Self {
            ring,
            metrics,
            open: Vec::new(),
            due: Instant::now(),
        }
    }

    /// Writes until [`WriterCommand::Finish`], every [`WRITE_EVERY`] while there are recordings.
    pub(super) fn run(mut self, commands: &Receiver<WriterCommand>) {
        loop {
            let wait = if self.open.is_empty() {
                Duration::MAX
            } else {
                self.due.saturating_duration_since(Instant::now())
            };
            match commands.recv_timeout(wait) {
                Ok(WriterCommand::Begin(name, opening, buffer)) => {
                    self.begin(&name, &opening, buffer)
                }
                Err(RecvTimeoutError::Timeout) => self.write(),
                Ok(WriterCommand::Finish) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.write();
        for recording in std::mem::take(&mut self.open) {
            self.end(recording, &EndReason::Session.into());
        }
    }

    fn begin(&mut self, name: &str, opening: &[u8], buffer: Arc<Buffer>) {
        let stop: Stop = match self.ring.create(name) {
            Ok(Some((path, file))) => return self.start(path, file, opening, buffer),
            Ok(None) => EndReason::Full.into(),
            Err(error) => error.into(),
        };
        buffer.end(stop.reason);
        self.report(name, &stop);
    }

    /// Starts to write into an existing empty file.
    pub(super) fn start(&mut self, path: PathBuf, file: File, opening: &[u8], buffer: Arc<Buffer>) {
        let mut recording = OpenRecording {
            path,
            file,
            length: 0,
            buffer,
            spare: Vec::new(),
        };
        match self.append(&mut recording, opening) {
            Ok(()) => self.open.push(recording),
            Err(stop) => self.end(recording, &stop),
        }
    }

    fn write(&mut self) {
        self.due = Instant::now() + WRITE_EVERY;
        for mut recording in std::mem::take(&mut self.open) {
            let mut bytes = std::mem::take(&mut recording.spare);
            let ended = recording.buffer.swap(&mut bytes);
            let written = self.append(&mut recording, &bytes);
            bytes.clear();
            bytes.shrink_to(SPARE_BYTES);
            recording.spare = bytes;
            match written.err().or_else(|| ended.map(Stop::from)) {
                None => self.open.push(recording),
                Some(stop) => self.end(recording, &stop),
            }
        }
    }

    /// Appends whole records. If that fails, the file is cut back to the state before, if its disk allows.
    fn append(&mut self, recording: &mut OpenRecording, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = recording.length + bytes.len() as u64;
        let with_mark = length + MARK_BYTES;
        if with_mark > self.ring.share() || !self.ring.grow(recording.room(), with_mark) {
            return Err(EndReason::Full.into());
        }
        let written = recording.file.write_all(bytes);
        recording.length = length;
        if let Err(error) = written {
            // If the rest of the last record cannot be cut off, it reads as torn. The ring continues to count it.
            let _ = recording.file.set_len(length - bytes.len() as u64);
            return Err(error.into());
        }
        self.metrics.recorded_bytes.inc_by(bytes.len() as u64);
        Ok(())
    }

    /// Ends a recording. If the session has not written the final mark, it is written here.
    fn end(&mut self, mut recording: OpenRecording, stop: &Stop) {
        recording.buffer.end(stop.reason);
        if stop.reason != EndReason::Session {
            mark(&mut recording.file, stop.reason);
        }
        let room = recording.room();
        self.report(&recording.path.display().to_string(), stop);
        self.ring.end(recording.path, room);
    }

    fn report(&self, file: &str, stop: &Stop) {
        let reason = match stop.reason {
            EndReason::Unspecified | EndReason::Session => "session",
            EndReason::Full => "full",
            EndReason::Behind => "behind",
            EndReason::Failed => "failed",
        };
        let ends = &self.metrics.recording_ends;
        ends.get_or_create_owned(&[("reason", reason)]).inc();
        if stop.reason != EndReason::Session {
            let error = stop.error.as_ref().map(tracing::field::display);
            tracing::warn!(
                peer = "all",
                file,
                reason,
                error,
                "recording ended before its session"
            );
        }
    }
}

/// Writes why a recording ends. Without space for the whole mark, the recording ends unmarked.
fn mark(file: &mut File, reason: EndReason) {
    let mut mark = Vec::new();
    server_recording::end(reason, None, &mut mark);
    let length = file.metadata().map(|it| it.len());
    if let (Err(_), Ok(length)) = (file.write_all(&mark), length) {
        let _ = file.set_len(length);
    }
}

// === impl Stop ===

impl From<EndReason> for Stop {
    fn from(reason: EndReason) -> Self {
        let error = None;
        Self { reason, error }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self {
            reason: EndReason::Failed,
            error: Some(error),
        }
    }
}

// === impl OpenRecording ===

impl OpenRecording {
    /// The length for which the ring has given space.
    const fn room(&self) -> u64 {
        match self.length {
            0 => 0,
            length => length + MARK_BYTES,
        }
    }
}
