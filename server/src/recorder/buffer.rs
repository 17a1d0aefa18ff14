//! The buffer between a session and the writer thread: bytes, and the end of the recording.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use server_recording::EndReason;

/// The maximum size of all buffers together.
pub(super) const WAITING_BYTES_MAX: usize = 64 << 20;

/// A command to the writer thread.
#[derive(Debug)]
pub(super) enum WriterCommand {
    /// Create a file of this name with these bytes, and continue with the buffer.
    Begin(String, Vec<u8>, Arc<Buffer>),
    /// Write all buffers, and end.
    Finish,
}

/// The unwritten records of one session.
#[derive(Debug)]
pub(super) struct Buffer {
    state: Mutex<BufferState>,
    /// The size of all buffers together.
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct BufferState {
    bytes: Vec<u8>,
    /// Set by the session when it ends, or by either side when the recording must end.
    ended: Option<EndReason>,
}

// === impl Buffer ===

impl Buffer {
    pub(super) fn new(waiting: Arc<AtomicUsize>) -> Self {
        Self {
            state: Mutex::default(),
            waiting,
        }
    }

    /// Appends records. Returns whether the recording continues.
    pub(super) fn append<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> (T, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.bytes.len();
        let written = write(&mut state.bytes);
        if state.ended.is_some() {
            state.bytes.truncate(before);
            return (written, false);
        }
        let more = state.bytes.len().saturating_sub(before);
        let waiting = self.waiting.fetch_add(more, Ordering::Relaxed);
        if waiting.saturating_add(more) > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(more, Ordering::Relaxed);
            state.bytes.truncate(before);
            state.ended = Some(EndReason::Behind);
            return (written, false);
        }
        (written, true)
    }

    /// Ends the recording, unless it has already ended.
    pub(super) fn end(&self, reason: EndReason) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended.get_or_insert(reason);
    }

    /// Exchanges the unwritten records for an empty vector, whose memory the session fills next. Returns the reason if the recording has
    /// ended.
    pub(super) fn swap(&self, bytes: &mut Vec<u8>) -> Option<EndReason> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.bytes, bytes);
        self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
        state.ended
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.swap(&mut Vec::new());
    }
}
