//! One session's part of the gauges that are summed over sessions. The part is subtracted when the session ends, for any reason.

use prometheus_client::metrics::{counter::Counter, gauge::Gauge};
use server_core::{Sizes, Span};
use server_session::{SessionIdentity, Stats};

use crate::metrics::{Metrics, QueueMetrics, SessionLabels, UnconvergedLabels};

/// The reason of ReplicaSets that have too few or too many pods, or unavailable ones.
const NUMBER: &str = "number";
const AVAILABILITY: &str = "availability";

/// The values that a session has added to the gauges.
#[derive(Debug)]
pub(crate) struct Gauges {
    metrics: Metrics,
    queue: QueueMetrics,
    pod_events: Counter,
    replica_set_events: Counter,
    shown: Stats,
    labels: SessionLabels,
    session_id: String,
}

// === impl Gauges ===

impl Gauges {
    pub(crate) fn new(identity: &SessionIdentity, metrics: Metrics) -> Self {
        metrics.sessions.inc();
        let labels = [
            ("cluster", identity.cluster().to_owned()),
            ("cluster_uid", identity.cluster_uid.clone()),
            ("shard", identity.shard.clone()),
        ];
        metrics.newest.open(&labels, &identity.session_id);
        let events = |kind| metrics.events.get_or_create_owned(&[("kind", kind)]);
        let gauges = Self {
            queue: metrics.queue(),
            pod_events: events("pod"),
            replica_set_events: events("replicaset"),
            metrics,
            shown: Stats::default(),
            labels,
            session_id: identity.session_id.clone(),
        };
        for because in [NUMBER, AVAILABILITY] {
            gauges.set_unconverged(because, 0);
        }
        gauges
    }

    /// Replaces the values of the previous call.
    pub(crate) fn set(&mut self, stats: Stats) {
        let Stats {
            sizes,
            pod_events,
            replica_set_events,
            comparisons,
            view_age,
        } = stats;
        let shown = std::mem::replace(&mut self.shown, stats);
        self.set_sizes(shown.sizes, sizes);
        let counters = [
            (&self.pod_events, shown.pod_events, pod_events),
            (
                &self.replica_set_events,
                shown.replica_set_events,
                replica_set_events,
            ),
            (&self.metrics.comparisons, shown.comparisons, comparisons),
        ];
        for (counter, from, to) in counters {
            counter.inc_by(to.saturating_sub(from));
        }
        if let Some(age) = view_age.filter(|_| view_age != shown.view_age) {
            self.set_view_age(age);
        }
    }

    fn set_sizes(&self, from: Sizes, to: Sizes) {
        let Sizes {
            pods,
            replica_sets,
            largest_replica_set: _,
            batches_in_flight,
            queued,
            syncing: _,
            quarantined,
            miscounted_for_long,
            unavailable_for_long,
            bytes,
            adds,
            retries,
        } = to;
        let Self { metrics, queue, .. } = self;
        let gauges = [
            (&metrics.pods, from.pods, pods),
            (&metrics.replica_sets, from.replica_sets, replica_sets),
            (
                &metrics.batches_in_flight,
                from.batches_in_flight,
                batches_in_flight,
            ),
            (&metrics.quarantined, from.quarantined, quarantined),
            (&queue.depth, from.queued, queued),
        ];
        for (gauge, from, to) in gauges {
            shift(gauge, from, to);
        }
        let unconverged = [
            (NUMBER, from.miscounted_for_long, miscounted_for_long),
            (
                AVAILABILITY,
                from.unavailable_for_long,
                unavailable_for_long,
            ),
        ];
        for (because, _, count) in unconverged.into_iter().filter(|(_, from, to)| from != to) {
            self.set_unconverged(because, count);
        }
        if from.bytes != bytes {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let held = metrics.session_memory.get_or_create(&self.labels);
            held.set(bytes);
        }
        queue.adds.inc_by(adds.saturating_sub(from.adds));
        queue.retries.inc_by(retries.saturating_sub(from.retries));
    }

    fn set_unconverged(&self, because: &'static str, count: usize) {
        let labels = unconverged_labels(&self.labels, because);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.unconverged.get_or_create(&labels).set(count);
    }

    /// Shows the age of the agent's view.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an age in seconds needs no nanosecond"
    )]
    fn set_view_age(&self, age: Span) {
        self.metrics
            .view_age
            .get_or_create(&self.labels)
            .set(age.0 as f64 / 1e9);
    }
}

fn unconverged_labels(labels: &SessionLabels, because: &'static str) -> UnconvergedLabels {
    let [cluster, uid, shard] = labels.clone();
    [cluster, uid, shard, ("because", because.to_owned())]
}

fn shift(gauge: &Gauge, from: usize, to: usize) {
    if from != to {
        let int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        gauge.inc_by(int(to).saturating_sub(int(from)));
    }
}

impl Drop for Gauges {
    fn drop(&mut self) {
        // The gauges with labels may already belong to the session's successor.
        let sizes = Sizes {
            miscounted_for_long: self.shown.sizes.miscounted_for_long,
            unavailable_for_long: self.shown.sizes.unavailable_for_long,
            bytes: self.shown.sizes.bytes,
            adds: self.shown.sizes.adds,
            retries: self.shown.sizes.retries,
            ..Sizes::default()
        };
        self.set_sizes(self.shown.sizes, sizes);
        self.metrics.sessions.dec();
        if self.metrics.newest.close(&self.labels, &self.session_id) {
            self.metrics.view_age.remove(&self.labels);
            self.metrics.session_memory.remove(&self.labels);
            for because in [NUMBER, AVAILABILITY] {
                let labels = unconverged_labels(&self.labels, because);
                self.metrics.unconverged.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn gauges(metrics: &Metrics, session_id: &str, bytes: usize) -> Gauges {
        gauges_of("uid", metrics, session_id, bytes)
    }

    fn gauges_of(uid: &str, metrics: &Metrics, session_id: &str, bytes: usize) -> Gauges {
        let identity = SessionIdentity {
            session_id: session_id.to_owned(),
            cluster_uid: uid.to_owned(),
            cluster_name: "north".to_owned(),
            shard: String::new(),
            agent_instance: "agent".to_owned(),
            epoch: 0,
            mode: decree::v1::Mode::Enforce,
            started: server_core::Timestamp(0),
        };
        let mut gauges = Gauges::new(&identity, metrics.clone());
        let sizes = Sizes {
            miscounted_for_long: bytes / 100,
            bytes,
            ..Sizes::default()
        };
        gauges.set(Stats {
            sizes,
            view_age: Some(Span::seconds(3)),
            ..Stats::default()
        });
        gauges
    }

    #[test]
    fn superseded_session_leaves_the_gauges_of_its_successor() {
        let metrics = Metrics::register(&mut Registry::default());
        let older = gauges(&metrics, "older", 100);
        let newer = gauges(&metrics, "newer", 200);
        let labels = older.labels.clone();
        let memory = || metrics.session_memory.get(&labels).map(|gauge| gauge.get());
        let age = || metrics.view_age.get(&labels).map(|gauge| gauge.get());
        let miscounted = unconverged_labels(&labels, NUMBER);
        let unconverged = || {
            metrics
                .unconverged
                .get(&miscounted)
                .map(|gauge| gauge.get())
        };
        drop(older);
        assert_eq!((memory(), age()), (Some(200), Some(3.0)));
        assert_eq!(unconverged(), Some(2));
        drop(newer);
        assert_eq!((memory(), age()), (None, None));
        assert_eq!(unconverged(), None);
    }

    #[test]
    fn cluster_that_is_called_like_another_leaves_the_gauges_of_that_one() {
        let metrics = Metrics::register(&mut Registry::default());
        let first = gauges_of("first", &metrics, "one", 100);
        let second = gauges_of("second", &metrics, "two", 200);
        let memory = |labels| metrics.session_memory.get(labels).map(|gauge| gauge.get());
        let labels = first.labels.clone();
        assert_eq!(memory(&labels), Some(100));
        drop(second);
        assert_eq!(memory(&labels), Some(100));
    }
}
