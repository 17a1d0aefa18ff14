//! The thread that writes recordings.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::Duration,
};

use server_session::recording::EndReason;

use super::ring::Ring;
use crate::metrics::Metrics;

/// The maximum number of records that wait to be written.
pub(super) const WAITING_MAX: usize = 1 << 16;
/// The maximum size of all records that wait to be written.
pub(super) const WAITING_BYTES_MAX: usize = 64 << 20;
/// How often records are written. A killed server loses at most this much.
const WRITE_EVERY: Duration = Duration::from_millis(20);
/// The space in each recording that is reserved for its final mark.
const MARK_BYTES: u64 = 64;

/// The queue of the writer thread.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    records: SyncSender<Records>,
    /// The size of all records in the queue.
    pub(super) waiting: Arc<AtomicUsize>,
}

/// Whole records of one recording.
#[derive(Debug)]
pub(super) struct Records {
    /// The id of the recording.
    pub(super) of: u64,
    /// The name of the file and the end of a recording that begins.
    pub(super) begins: Option<(String, Ended)>,
    pub(super) bytes: Vec<u8>,
}

/// Set when a recording ends: by its session, or by the writer if it cannot continue.
pub(super) type Ended = Arc<OnceLock<EndReason>>;

/// All unfinished recordings.
#[derive(Debug)]
pub(super) struct RecordingWriter {
    ring: Ring,
    metrics: Metrics,
    /// The size of all records that wait.
    waiting: Arc<AtomicUsize>,
    /// By their ids.
    open: HashMap<u64, OpenRecording>,
}

/// Why a recording ends, and the error of the system, if that is the cause.
type Stop = (EndReason, Option<io::Error>);

/// An unfinished recording.
#[derive(Debug)]
struct OpenRecording {
    path: PathBuf,
    file: File,
    length: u64,
    ended: Ended,
}

impl Queue {
    pub(super) fn new() -> (Self, Receiver<Records>) {
        let (records, arriving) = sync_channel(WAITING_MAX);
        let waiting = Arc::default();
        (Self { records, waiting }, arriving)
    }

    /// Sends records. Returns `false` if too many wait.
    pub(super) fn send(&self, records: Records) -> bool {
        let more = records.bytes.len();
        let waiting = self.waiting.fetch_add(more, Ordering::Relaxed);
        let is_sent = waiting.saturating_add(more) <= WAITING_BYTES_MAX
            && self.records.try_send(records).is_ok();
        if !is_sent {
            self.waiting.fetch_sub(more, Ordering::Relaxed);
        }
        is_sent
    }
}

impl RecordingWriter {
    pub(super) fn new(ring: Ring, metrics: Metrics, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            ring,
            metrics,
            waiting,
            open: HashMap::new(),
        }
    }

    /// Writes what arrives, every [`WRITE_EVERY`], and a last time after a message or the end of `finish`.
    pub(super) fn run(mut self, arriving: &Receiver<Records>, finish: &Receiver<()>) {
        while finish.recv_timeout(WRITE_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.write(arriving);
        }
        self.write(arriving);
        for recording in std::mem::take(&mut self.open).into_values() {
            let reason = recording.ended.get().copied();
            self.end(recording, (reason.unwrap_or(EndReason::Session), None));
        }
    }

    fn write(&mut self, arriving: &Receiver<Records>) {
        // Read first: all records of an ended recording are in the queue now.
        let ended = self.open.iter().filter_map(|(id, recording)| {
            let reason = recording.ended.get()?;
            Some((*id, *reason))
        });
        let ended: Vec<_> = ended.collect();
        for records in arriving.try_iter().take(WAITING_MAX) {
            let bytes = records.bytes.len();
            self.take(records);
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        }
        for (id, reason) in ended {
            if let Some(recording) = self.open.remove(&id) {
                self.end(recording, (reason, None));
            }
        }
    }

    fn take(&mut self, Records { of, begins, bytes }: Records) {
        if let Some((name, ended)) = begins {
            match self.ring.create(&name) {
                Ok(Some((path, file))) => {
                    let recording = OpenRecording {
                        path,
                        file,
                        length: 0,
                        ended,
                    };
                    self.open.insert(of, recording);
                }
                Ok(None) => self.refuse(&name, &ended, &(EndReason::Full, None)),
                Err(error) => self.refuse(&name, &ended, &(EndReason::Failed, Some(error))),
            }
        }
        let Some(mut recording) = self.open.remove(&of) else {
            return;
        };
        match self.append(&mut recording, &bytes) {
            Ok(()) => drop(self.open.insert(of, recording)),
            Err(stop) => self.end(recording, stop),
        }
    }

    fn refuse(&self, name: &str, ended: &Ended, stop: &Stop) {
        let _ = ended.set(stop.0);
        self.report(name, stop);
    }

    /// Appends whole records. If that fails, the file is cut back to the state before, if its disk allows.
    fn append(&mut self, recording: &mut OpenRecording, bytes: &[u8]) -> Result<(), Stop> {
        let length = recording.length + bytes.len() as u64;
        let with_mark = length + MARK_BYTES;
        if with_mark > self.ring.share() || !self.ring.grow(recording.room(), with_mark) {
            return Err((EndReason::Full, None));
        }
        let written = recording.file.write_all(bytes);
        recording.length = length;
        if let Err(error) = written {
            // If the rest of the last record cannot be cut off, it reads as torn. The ring continues to count it.
            let _ = recording.file.set_len(length - bytes.len() as u64);
            return Err((EndReason::Failed, Some(error)));
        }
        Ok(())
    }

    /// Ends a recording. If the session has not written the final mark, it is written here.
    fn end(&mut self, mut recording: OpenRecording, stop: Stop) {
        let _ = recording.ended.set(stop.0);
        if stop.0 != EndReason::Session {
            mark(&mut recording.file, stop.0);
        }
        let room = recording.room();
        self.report(&recording.path.display().to_string(), &stop);
        self.ring.end(recording.path, room);
    }

    fn report(&self, file: &str, (ended, error): &Stop) {
        let reason = match ended {
            EndReason::Unspecified | EndReason::Session => "session",
            EndReason::Full => "full",
            EndReason::Behind => "behind",
            EndReason::Failed => "failed",
        };
        let ends = &self.metrics.recording_ends;
        ends.get_or_create_owned(&[("reason", reason)]).inc();
        if *ended != EndReason::Session {
            let error = error.as_ref().map(tracing::field::display);
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
    server_session::recording::end(reason, None, &mut mark);
    let length = file.metadata().map(|it| it.len());
    if let (Err(_), Ok(length)) = (file.write_all(&mark), length) {
        let _ = file.set_len(length);
    }
}

impl OpenRecording {
    /// The length for which the ring has given space.
    const fn room(&self) -> u64 {
        match self.length {
            0 => 0,
            length => length + MARK_BYTES,
        }
    }
}
