//! The account of what all sessions hold, in bytes. A session that would exceed the bound is refused; what the others hold is theirs.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::error::{Limit, Refusal};

/// How much all sessions hold, and may.
#[derive(Debug)]
pub(crate) struct Memory {
    held: AtomicUsize,
    max: usize,
}

/// One session's entry; taken out when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    memory: Arc<Memory>,
    held: usize,
}

// === impl Memory ===

impl Memory {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
        }
    }

    /// Returns the entry of a session that holds nothing.
    pub(crate) fn share(self: &Arc<Self>) -> MemoryShare {
        MemoryShare {
            memory: Arc::clone(self),
            held: 0,
        }
    }
}

// === impl MemoryShare ===

impl MemoryShare {
    /// Notes how much the session holds.
    ///
    /// # Errors
    /// If that is more than before, and all sessions together hold more than they may.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Refusal> {
        let before = std::mem::replace(&mut self.held, bytes);
        if bytes <= before {
            self.memory
                .held
                .fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let more = bytes - before;
        let all = self.memory.held.fetch_add(more, Ordering::Relaxed) + more;
        let max = self.memory.max;
        if all > max {
            let what = Limit::Memory;
            return Err(Refusal::Exhausted { what, max });
        }
        Ok(())
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_that_grows_beyond_the_bound_is_refused_and_gives_back_what_it_held() {
        let memory = Arc::new(Memory::new(100));
        let (mut first, mut second) = (memory.share(), memory.share());
        assert!(first.hold(60).is_ok());
        assert!(second.hold(40).is_ok());
        assert!(second.hold(41).is_err());
        assert!(first.hold(59).is_ok(), "who shrinks is left alone");
        drop(second);
        assert!(first.hold(100).is_ok());
        assert!(first.hold(101).is_err());
    }
}
