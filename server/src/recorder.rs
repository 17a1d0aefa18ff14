//! The flight recorder: the frames of each session, in files of a folder with a maximum size.
//!
//! A session appends its records to a buffer in memory, which costs an encoding and a lock that is rarely contended. One thread writes
//! the buffers of all sessions every few milliseconds. If the thread or its disk falls behind, or a session has used up its share, the
//! recording ends with a mark. The session continues.

use std::{
    fs::File,
    path::PathBuf,
    sync::{
        Arc,
        atomic::AtomicUsize,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use decree::v1;
use server_core::Timestamp;
use server_recording::{Encoder, EndReason};
use thiserror::Error;

use self::{
    buffer::{Buffer, WriterCommand},
    ring::Ring,
    writer::RecordingWriter,
};
use crate::{args::Recording, metrics::Metrics};

mod buffer;
mod ring;
mod session_recording;
mod writer;

pub(crate) use self::session_recording::{RecordedSession, SessionRecording};

/// The maximum number of recordings that wait to be started. Beyond it, sessions go unrecorded.
const BEGINNING_MAX: usize = 256;
/// How long a server waits at its end until recordings are written. A disk that hangs must not block the end.
pub(crate) const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Why the server cannot record.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The folder cannot be created or read.
    #[error("{}: recordings cannot be kept here", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// Another server records here.
    #[error("{}: another server records here; give each server its own folder", .0.display())]
    Taken(PathBuf),
}

/// Starts recordings. Clones use the same folder.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    commands: SyncSender<WriterCommand>,
    waiting: Arc<AtomicUsize>,
}

/// The writer thread.
#[derive(Debug)]
pub(crate) struct WriterThread {
    commands: SyncSender<WriterCommand>,
    /// Gets a message when all recordings are written. Closes without one if the thread panics.
    written: Receiver<()>,
    /// Locked while the thread lives, so that no other server writes to the folder.
    _lock: File,
}

// === impl Recorder ===

impl Recorder {
    /// Creates the folder if necessary, and starts the writer thread.
    ///
    /// # Errors
    /// If recordings cannot be stored in the folder.
    pub(crate) fn start(
        recording: &Recording,
        metrics: Metrics,
    ) -> Result<Option<(Self, WriterThread)>, RecordError> {
        let Some(folder) = &recording.record else {
            return Ok(None);
        };
        let failed = |source| RecordError::Folder {
            folder: folder.clone(),
            source,
        };
        let lock = ring::lock(folder).map_err(failed)?;
        let lock = lock.ok_or_else(|| RecordError::Taken(folder.clone()))?;
        let ring = Ring::open(folder.clone(), recording.record_bytes_max).map_err(failed)?;
        let (commands, arriving) = sync_channel(BEGINNING_MAX);
        let writer = RecordingWriter::new(ring, metrics);
        let (finished, written) = sync_channel(1);
        let run = move || {
            writer.run(&arriving);
            // The receiver is gone if the server has waited long enough.
            let _ = finished.send(());
        };
        let thread = thread::Builder::new().name("recorder".to_owned());
        thread.spawn(run).map_err(failed)?;
        let waiting = Arc::default();
        let thread = WriterThread {
            commands: commands.clone(),
            written,
            _lock: lock,
        };
        Ok(Some((Self { commands, waiting }, thread)))
    }

    /// The recording of a session that is opened with these arguments. Nothing is written before [`Self::begin`].
    pub(crate) fn recording(
        &self,
        now: server_session::Now,
        config: &server_session::Config,
        session_id: &str,
        hello: &v1::ReconcileRequest,
    ) -> SessionRecording {
        let buffer = Buffer::new(Arc::clone(&self.waiting));
        let begin = |out: &mut Vec<u8>| Encoder::begin(now, config, session_id, hello, out);
        let (encoder, _) = buffer.append(begin);
        let buffer = Arc::new(buffer);
        SessionRecording { buffer, encoder }
    }

    /// Starts to write a recording. If that fails, the session goes unrecorded.
    pub(crate) fn begin(&self, recording: &SessionRecording, started: Timestamp, session_id: &str) {
        let name = ring::name(started, session_id);
        let (buffer, mut opening) = (Arc::clone(&recording.buffer), Vec::new());
        buffer.swap(&mut opening);
        let begin = WriterCommand::Begin(name, opening, buffer);
        if self.commands.try_send(begin).is_err() {
            recording.buffer.end(EndReason::Behind);
            tracing::warn!(
                peer = "all",
                "the session is not recorded: too many begin at once"
            );
        }
    }
}

// === impl WriterThread ===

impl WriterThread {
    /// Ends all recordings and waits until they are written, for at most `within`.
    pub(crate) fn finish(self, within: Duration) {
        // A full queue means that the thread hangs, a closed one that it has panicked.
        let _ = self.commands.try_send(WriterCommand::Finish);
        match self.written.recv_timeout(within) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!("the disk does not take recordings; they are cut off");
            }
            Err(RecvTimeoutError::Disconnected) => {
                tracing::error!("the recorder panicked; recordings may be cut off");
            }
        }
    }
}

#[cfg(test)]
mod tests;
