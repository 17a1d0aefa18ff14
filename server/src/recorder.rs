//! The flight recorder: the frames of each session, in files of a folder with a maximum size.
//!
//! Sessions send their records to one bounded queue, and one thread writes them to files every few milliseconds. If the thread or its disk
//! falls behind, or a session has used up its share, the recording ends with a mark. The session continues.

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use decree_api::v1;
use server_session::recording::Encoder;
use service::Fault;

use self::{
    ring::Ring,
    writer::{Queue, RecordingWriter},
};
use crate::{args::Recording, metrics::Metrics};

mod ring;
mod session_recording;
mod writer;

pub(crate) use self::session_recording::{RecordedSession, SessionRecording};

/// How long a server waits at its end until recordings are written. A disk that hangs must not block the end.
pub(crate) const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// Starts recordings. Clones use the same folder.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    queue: Queue,
    /// The id of the next recording.
    next: Arc<AtomicU64>,
}

#[derive(Debug)]
pub(crate) struct WriterThread {
    /// Tells the thread to write what waits, and to end.
    finish: SyncSender<()>,
    /// Gets a message when all recordings are written. Closes without one if the thread panics.
    written: Receiver<()>,
    /// Locked while the thread lives, so that no other server writes to the folder.
    _lock: File,
}

impl Recorder {
    /// Creates the folder if necessary, and starts the writer thread.
    ///
    /// # Errors
    /// If recordings cannot be stored in the folder.
    pub(crate) fn start(
        recording: &Recording,
        metrics: Metrics,
    ) -> Result<Option<(Self, WriterThread)>, Fault> {
        let Some(folder) = &recording.record else {
            return Ok(None);
        };
        let failed = |error: io::Error| {
            let what = format!("{}: recordings cannot be kept here", folder.display());
            Fault::because(what, error)
        };
        let lock = ring::lock(folder).map_err(failed)?;
        let lock = lock.ok_or_else(|| {
            let folder = folder.display();
            Fault::new(format!(
                "{folder}: another server records here; give each server its own folder"
            ))
        })?;
        let ring = Ring::open(folder.clone(), recording.record_bytes_max).map_err(failed)?;
        let (queue, arriving) = Queue::new();
        let writer = RecordingWriter::new(ring, metrics, Arc::clone(&queue.waiting));
        let (finished, written) = sync_channel(1);
        let (finish, finishing) = sync_channel(1);
        let run = move || {
            writer.run(&arriving, &finishing);
            // The receiver is gone if the server has waited long enough.
            let _ = finished.send(());
        };
        let thread = thread::Builder::new().name("recorder".to_owned());
        thread.spawn(run).map_err(failed)?;
        let thread = WriterThread {
            finish,
            written,
            _lock: lock,
        };
        let next = Arc::default();
        Ok(Some((Self { queue, next }, thread)))
    }

    /// The recording of a session that is opened with these arguments. Nothing is written before it [begins](SessionRecording::begin).
    pub(crate) fn recording(
        &self,
        now: server_session::Now,
        config: &server_session::Config,
        session_id: &str,
        hello: &v1::ReconcileRequest,
    ) -> SessionRecording {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut opening = Vec::new();
        let encoder = Encoder::begin(now, config, session_id, hello, &mut opening);
        SessionRecording::new(id, self.queue.clone(), encoder, opening)
    }
}

impl WriterThread {
    /// Ends all recordings and waits until they are written, for at most `within`.
    pub(crate) fn finish(self, within: Duration) {
        // The receiver is gone if the thread has panicked.
        let _ = self.finish.try_send(());
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
