//! The metrics of unfinished syncs, summed over sessions, under upstream's names. They are updated when the page is read.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};
use server_core::{Span, Unfinished};
use tokio::time::Instant;

/// The unfinished syncs of all sessions. Clones share the map.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnfinishedWork(Arc<Mutex<BTreeMap<String, Seen>>>);

/// The unfinished syncs of one session at its last update.
#[derive(Clone, Copy, Debug)]
struct Seen {
    syncs: usize,
    work: Unfinished,
    at: Instant,
}

/// A span in seconds, which need no nanosecond.
#[expect(
    clippy::cast_precision_loss,
    reason = "a wait or an age needs no nanosecond"
)]
pub(crate) const fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

/// Upstream's label of a work queue.
pub(super) fn label() -> (Cow<'static, str>, Cow<'static, str>) {
    ("name".into(), "replicaset".into())
}

// === impl UnfinishedWork ===

impl UnfinishedWork {
    pub(crate) fn set(&self, session: &str, syncs: usize, work: Unfinished) {
        let mut sessions = self.lock();
        if syncs == 0 {
            sessions.remove(session);
            return;
        }
        let at = Instant::now();
        sessions.insert(session.to_owned(), Seen { syncs, work, at });
    }

    /// The sum over all syncs, and the longest sync, in seconds.
    fn seconds(&self) -> (f64, f64) {
        self.lock()
            .values()
            .fold((0.0, 0.0), |(total, longest), seen| {
                let since = seen.at.elapsed().as_secs_f64();
                let syncs = f64::from(u32::try_from(seen.syncs).unwrap_or(u32::MAX));
                (
                    total + since.mul_add(syncs, seconds(seen.work.total)),
                    longest.max(seconds(seen.work.longest) + since),
                )
            })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for UnfinishedWork {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (total, longest) = self.seconds();
        for (name, help, value) in [
            (
                "workqueue_unfinished_work_seconds",
                "Age of the syncs in progress, summed up. Growing: an agent or its cluster hangs.",
                total,
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "Age of the oldest sync in progress.",
                longest,
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn work(total: i64, longest: i64) -> Unfinished {
        Unfinished {
            total: Span::seconds(total),
            longest: Span::seconds(longest),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn syncs_grow_older_until_their_session_says_that_they_ended() {
        let all = UnfinishedWork::default();
        all.set("a", 2, work(5, 4));
        all.set("b", 1, work(1, 1));
        tokio::time::advance(Duration::from_secs(10)).await;
        let (total, longest) = all.seconds();
        assert_eq!((total.round(), longest.round()), (36.0, 14.0));
        all.set("a", 0, Unfinished::default());
        let (total, longest) = all.seconds();
        assert_eq!((total.round(), longest.round()), (11.0, 11.0));
    }
}
