//! Detects an input whose check does not end; no panic reports that.

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

/// The running check. The process ends when a check uses more than [`Self::STUCK`] of processor time, or waits for [`Self::HANGS`].
pub(crate) struct Progress {
    shared: Arc<Shared>,
    /// Stops the watching thread when dropped.
    _ends: SyncSender<()>,
}

#[derive(Default)]
struct Shared {
    /// The number of the current input.
    number: AtomicU64,
    /// The number of started checks.
    checks: AtomicU64,
}

/// The progress at some time.
struct Look {
    checks: u64,
    at: Instant,
    /// The processor time of the thread; zero where the system does not report it.
    processor: Duration,
}

// === impl Look ===

impl Look {
    fn at(shared: &Shared, stat: &Path) -> Self {
        /// The length of a clock tick in `/proc`.
        const TICK: Duration = Duration::from_millis(10);
        let text = fs::read_to_string(stat).unwrap_or_default();
        // The name may contain spaces. After the name comes the state, the third field.
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
    /// The maximum processor time of a check, which usually takes milliseconds. Other load on the machine does not count.
    pub(crate) const STUCK: Duration = Duration::from_secs(60);
    /// The maximum duration of a check that only waits.
    const HANGS: Duration = Duration::from_mins(10);
    /// The interval between two looks.
    const EVERY: Duration = Duration::from_secs(5);

    /// Starts a thread that watches the calling thread. It passes the number of a stuck input to `stuck`.
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

    /// Notes the start of a check of the input with this number. An input can be checked several times.
    pub(crate) fn begin(&self, number: u64) {
        self.shared.number.store(number, Ordering::Relaxed);
        self.shared.checks.fetch_add(1, Ordering::Relaxed);
    }
}
