//! What lies between a session and the thread that writes: bytes, and how the recording ended.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use server_recording::EndReason;

/// The bytes of all sessions that may wait to be written.
pub(super) const WAITING_BYTES_MAX: usize = 64 << 20;

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum WriterCommand {
    /// Begin to write a file of this name with these bytes, and go on with what the buffer gets.
    Begin(String, Vec<u8>, Arc<Buffer>),
    /// Write what there is, and end.
    Finish,
}

/// The records of one session that are not written yet.
#[derive(Debug)]
pub(super) struct Buffer {
    state: Mutex<BufferState>,
    /// The bytes of all buffers.
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
pub(super) struct BufferState {
    pub(super) bytes: Vec<u8>,
    /// Set by the session when it has ended, or by either side when the recording has to.
    pub(super) ended: Option<EndReason>,
}

// === impl Buffer ===

impl Buffer {
    pub(super) fn new(waiting: Arc<AtomicUsize>) -> Self {
        Self {
            state: Mutex::default(),
            waiting,
        }
    }

    /// Lets a session append, and returns whether the recording goes on.
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

    /// Ends the recording, unless it has ended.
    pub(super) fn end(&self, reason: EndReason) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ended.get_or_insert(reason);
    }

    /// Takes what is to be written.
    pub(super) fn take(&self) -> BufferState {
        let mut bytes = Vec::new();
        let ended = self.swap(&mut bytes);
        BufferState { bytes, ended }
    }

    /// Takes what is to be written in exchange for an empty vector, whose memory the session fills next. Returns how the recording
    /// ended, if it did.
    pub(super) fn swap(&self, bytes: &mut Vec<u8>) -> Option<EndReason> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.bytes, bytes);
        self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
        state.ended
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.take();
    }
}
