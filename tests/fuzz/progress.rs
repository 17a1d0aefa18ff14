//! Notices an input whose check does not end, which no panic reports.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, SyncSender},
    },
    thread::Scope,
    time::Duration,
};

/// The check that runs. The process ends when one runs for longer than [`Self::STUCK`].
pub(crate) struct Progress {
    shared: Arc<Shared>,
    /// Tells the thread that watches to end, by being dropped.
    _ends: SyncSender<()>,
}

#[derive(Default)]
struct Shared {
    /// Which input is checked.
    number: AtomicU64,
    /// How many checks were begun.
    checks: AtomicU64,
}

// === impl Progress ===

impl Progress {
    /// How long one check may take; they take milliseconds. It is found stuck after twice this at the latest.
    pub(crate) const STUCK: Duration = Duration::from_secs(60);

    /// Begins to watch from a thread of its own, which says by `stuck` which input does not end.
    #[expect(
        clippy::disallowed_methods,
        reason = "no thread can end one that does not return"
    )]
    pub(crate) fn watched<'scope>(
        scope: &'scope Scope<'scope, '_>,
        stuck: impl FnOnce(u64) + Send + 'scope,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let (ends, ended) = mpsc::sync_channel(1);
        let watched = Arc::clone(&shared);
        scope.spawn(move || {
            let mut checks = 0;
            while ended.recv_timeout(Self::STUCK) == Err(RecvTimeoutError::Timeout) {
                let before = std::mem::replace(&mut checks, watched.checks.load(Ordering::Relaxed));
                if before == checks {
                    stuck(watched.number.load(Ordering::Relaxed));
                    process::exit(1);
                }
            }
        });
        Self {
            shared,
            _ends: ends,
        }
    }

    /// Notes that the input of this number is checked, for the first time or again.
    pub(crate) fn begin(&self, number: u64) {
        self.shared.number.store(number, Ordering::Relaxed);
        self.shared.checks.fetch_add(1, Ordering::Relaxed);
    }
}
