//! One session's share of the gauges that are summed over sessions; given back when the session ends, however it ends.

use prometheus_client::metrics::gauge::Gauge;
use server_core::{Sizes, Span};

use super::hello::Identity;
use crate::metrics::{Metrics, Queue};

/// What a session has added to the gauges.
#[derive(Debug)]
pub(crate) struct Gauges {
    metrics: Metrics,
    queue: Queue,
    shown: Sizes,
    labels: [(&'static str, String); 2],
}

// === impl Gauges ===

impl Gauges {
    pub(crate) fn new(identity: &Identity, metrics: Metrics) -> Self {
        metrics.sessions.inc();
        let labels = [
            ("cluster", identity.cluster().to_owned()),
            ("shard", identity.shard.clone()),
        ];
        Self {
            queue: metrics.queue(),
            metrics,
            shown: Sizes::default(),
            labels,
        }
    }

    /// Shows these sizes instead of the ones before.
    pub(crate) fn set(&mut self, sizes: Sizes) {
        let Sizes {
            pods,
            replica_sets,
            batches_in_flight,
            queued,
            quarantined,
            adds,
            retries,
        } = sizes;
        let Self {
            metrics,
            queue,
            shown,
            ..
        } = self;
        shift(&metrics.pods, shown.pods, pods);
        shift(&metrics.replica_sets, shown.replica_sets, replica_sets);
        shift(
            &metrics.batches_in_flight,
            shown.batches_in_flight,
            batches_in_flight,
        );
        shift(&metrics.quarantined, shown.quarantined, quarantined);
        shift(&queue.depth, shown.queued, queued);
        queue.adds.inc_by(adds.saturating_sub(shown.adds));
        queue.retries.inc_by(retries.saturating_sub(shown.retries));
        *shown = sizes;
    }

    /// Shows how old the agent's view is.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an age in seconds needs no nanosecond"
    )]
    pub(crate) fn set_view_age(&self, age: Span) {
        self.metrics
            .view_age
            .get_or_create(&self.labels)
            .set(age.0 as f64 / 1e9);
    }
}

fn shift(gauge: &Gauge, from: usize, to: usize) {
    if from != to {
        let int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        gauge.inc_by(int(to).saturating_sub(int(from)));
    }
}

impl Drop for Gauges {
    fn drop(&mut self) {
        let Sizes { adds, retries, .. } = self.shown;
        self.set(Sizes {
            adds,
            retries,
            ..Sizes::default()
        });
        self.metrics.sessions.dec();
        self.metrics.view_age.remove(&self.labels);
    }
}
