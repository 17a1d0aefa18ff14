//! The flight recorder: the frames of each session, in files of a folder that never holds more than its bound.
//!
//! A session appends its records to a buffer in memory, which costs it an encoding and a lock that is seldom contended. One
//! thread takes the buffers of all sessions every few milliseconds and writes them down. Where the thread or its disk falls behind, or a session has
//! used up its share, that recording ends with a mark; the session goes on.

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
use thiserror::Error;

use self::{buffer::WriterCommand, ring::Ring, writer::RecordingWriter};
use crate::{args::Recording, metrics::Metrics};

mod buffer;
mod ring;
mod session_recording;
mod writer;

pub(crate) use self::session_recording::{RecordedSession, SessionRecording};

/// The recordings that may wait to be begun; of more that begin at once, some are not made.
const BEGINNING_MAX: usize = 256;
/// How long a server that ends waits until recordings are written: a disk that hangs must not keep it.
pub(crate) const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The folder is not there and cannot be made, or not be read.
    #[error("{}: recordings cannot be kept here", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// Another server records here.
    #[error("{}: another server records here; give each a folder of its own", .0.display())]
    Taken(PathBuf),
}

/// Begins recordings. Clones begin them in the same folder.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    commands: SyncSender<WriterCommand>,
    waiting: Arc<AtomicUsize>,
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct WriterThread {
    commands: SyncSender<WriterCommand>,
    /// Gets a word when all is written; closes without one if the thread panics.
    written: Receiver<()>,
    /// Held while the thread lives, so that no other server writes here.
    _lock: File,
}

// === impl Recorder ===

impl Recorder {
    /// Makes the folder if need be, and begins to write what recordings hold.
    ///
    /// # Errors
    /// If recordings cannot be kept there.
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
            // A server that has waited long enough does not receive it.
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

    /// Returns the recording of a session that is about to be opened with these arguments; nothing is kept of it before [`Self::begin`].
    pub(crate) fn recording(
        &self,
        now: server_session::Now,
        config: &server_session::Config,
        session_id: &str,
        hello: &v1::ReconcileRequest,
    ) -> SessionRecording {
        SessionRecording::new(Arc::clone(&self.waiting), now, config, session_id, hello)
    }

    /// Begins to write a recording; a session that cannot be recorded goes unrecorded.
    pub(crate) fn begin(&self, recording: &SessionRecording, started: Timestamp, session_id: &str) {
        let name = ring::name(started, session_id);
        let begin = WriterCommand::Begin(name, recording.opening(), recording.buffer());
        if self.commands.try_send(begin).is_err() {
            recording.give_up();
            tracing::warn!("the session is not recorded: too many begin at once");
        }
    }
}

// === impl WriterThread ===

impl WriterThread {
    /// Ends all recordings and waits until they are written, for at most `within`.
    pub(crate) fn finish(self, within: Duration) {
        // Where the queue is full, the thread has not come to it for long; where it is gone, it has panicked.
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
