//! Notices an input whose check does not end, which no panic reports.

use std::{
    fs,
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, SyncSender},
    },
    thread::Scope,
    time::{Duration, Instant},
};

/// The check that runs. The process ends when one takes more than [`Self::STUCK`] of a processor, or waits for [`Self::HANGS`].
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

/// How far the checks were at some time.
struct Look {
    checks: u64,
    at: Instant,
    /// What the thread had taken of a processor; nothing where the system does not say.
    processor: Duration,
}

// === impl Look ===

impl Look {
    fn at(shared: &Shared, stat: &Path) -> Self {
        /// A clock tick, as Linux tells them to processes.
        const TICK: Duration = Duration::from_millis(10);
        let text = fs::read_to_string(stat).unwrap_or_default();
        // The name may have blanks in it; what follows it begins with the state, the third field.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields = rest.split_whitespace().skip(11).take(2);
        let ticks: u32 = fields.filter_map(|it| it.parse::<u32>().ok()).sum();
        Self {
            checks: shared.checks.load(Ordering::Relaxed),
            at: Instant::now(),
            processor: TICK * ticks,
        }
    }
}

// === impl Progress ===

impl Progress {
    /// How much of a processor one check may take; they take milliseconds. Other work on the machine does not count.
    pub(crate) const STUCK: Duration = Duration::from_secs(60);
    /// How long one check may last that takes nothing, as it waits.
    const HANGS: Duration = Duration::from_mins(10);
    /// How often it is looked.
    const EVERY: Duration = Duration::from_secs(5);

    /// Begins to watch the calling thread from a thread of its own, which says by `stuck` which input does not end.
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
        let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
        let stat = Path::new("/proc").join(thread).join("stat");
        scope.spawn(move || {
            let mut look = Look::at(&watched, &stat);
            while ended.recv_timeout(Self::EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = Look::at(&watched, &stat);
                if now.checks != look.checks {
                    look = now;
                } else if now.processor.saturating_sub(look.processor) > Self::STUCK
                    || now.at - look.at > Self::HANGS
                {
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
