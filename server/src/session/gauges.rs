//! One session's part of the gauges that are summed over sessions. The part is subtracted when the session ends, for any reason.

use std::{mem, sync::Arc};

use prometheus_client::metrics::counter::Counter;
use server_core::{Sizes, Unfinished};
use server_session::{SessionIdentity, Stats};

use crate::{
    metrics::{Metrics, SessionLabels, UnconvergedLabels, seconds},
    registry::LiveSessions,
};

/// The reason of ReplicaSets that have too few or too many pods, or unavailable ones.
const NUMBER: &str = "number";
const AVAILABILITY: &str = "availability";

/// The values that a session has added to the gauges.
#[derive(Debug)]
pub(crate) struct Gauges {
    metrics: Metrics,
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
    pod_events: Counter,
    replica_set_events: Counter,
    shown: Stats,
    labels: SessionLabels,
}

// === impl Gauges ===

impl Gauges {
    /// The gauges of a registered session.
    pub(crate) fn new(
        identity: &Arc<SessionIdentity>,
        metrics: Metrics,
        registry: &Arc<LiveSessions>,
    ) -> Self {
        metrics.sessions.inc();
        let labels = [
            ("cluster", identity.cluster().to_owned()),
            ("cluster_uid", identity.cluster_uid.clone()),
            ("shard", identity.shard.clone()),
        ];
        let events = |kind| metrics.events.get_or_create_owned(&[("kind", kind)]);
        let gauges = Self {
            pod_events: events("pod"),
            replica_set_events: events("replicaset"),
            metrics,
            registry: Arc::clone(registry),
            identity: Arc::clone(identity),
            shown: Stats::default(),
            labels,
        };
        for because in [NUMBER, AVAILABILITY] {
            gauges.set_unconverged(because, 0);
        }
        gauges
    }

    /// Replaces the values of the previous call.
    pub(crate) fn set(&mut self, stats: Stats) {
        let Stats {
            sizes: to,
            pod_events,
            replica_set_events,
            comparisons,
            not_compared,
            view_age,
        } = stats;
        let shown = mem::replace(&mut self.shown, stats);
        let from = shown.sizes;
        self.shift(from, to);
        let metrics = &self.metrics;
        let sets = (shown.replica_set_events, replica_set_events);
        for (counter, (from, to)) in [
            (&self.pod_events, (shown.pod_events, pod_events)),
            (&self.replica_set_events, sets),
            (&metrics.comparisons, (shown.comparisons, comparisons)),
            (&metrics.not_compared, (shown.not_compared, not_compared)),
            (&metrics.queue_adds, (from.adds, to.adds)),
            (&metrics.queue_retries, (from.retries, to.retries)),
        ] {
            counter.inc_by(to.saturating_sub(from));
        }
        if from.miscounted_for_long != to.miscounted_for_long {
            self.set_unconverged(NUMBER, to.miscounted_for_long);
        }
        if from.unavailable_for_long != to.unavailable_for_long {
            self.set_unconverged(AVAILABILITY, to.unavailable_for_long);
        }
        if from.bytes != to.bytes {
            let held = metrics.session_memory.get_or_create(&self.labels);
            held.set(int(to.bytes));
        }
        if let Some(age) = view_age.filter(|age| shown.view_age != Some(*age)) {
            let view_age = metrics.view_age.get_or_create(&self.labels);
            view_age.set(seconds(age));
        }
    }

    /// Shifts the gauges that are summed over sessions.
    fn shift(&self, from: Sizes, to: Sizes) {
        let Sizes {
            pods,
            replica_sets,
            largest_replica_set: _,
            batches_in_flight,
            queued,
            syncing: _,
            quarantined,
            beyond_memory,
            // `set` shows these.
            miscounted_for_long: _,
            unavailable_for_long: _,
            bytes: _,
            adds: _,
            retries: _,
        } = to;
        let metrics = &self.metrics;
        let in_flight = (from.batches_in_flight, batches_in_flight);
        for (gauge, (from, to)) in [
            (&metrics.pods, (from.pods, pods)),
            (&metrics.replica_sets, (from.replica_sets, replica_sets)),
            (&metrics.batches_in_flight, in_flight),
            (&metrics.quarantined, (from.quarantined, quarantined)),
            (&metrics.beyond_memory, (from.beyond_memory, beyond_memory)),
            (&metrics.queue_depth, (from.queued, queued)),
        ] {
            if from != to {
                gauge.inc_by(int(to).saturating_sub(int(from)));
            }
        }
    }

    fn set_unconverged(&self, because: &'static str, count: usize) {
        let labels = unconverged_labels(&self.labels, because);
        let unconverged = self.metrics.unconverged.get_or_create(&labels);
        unconverged.set(int(count));
    }
}

fn unconverged_labels(labels: &SessionLabels, because: &'static str) -> UnconvergedLabels {
    let [cluster, uid, shard] = labels.clone();
    [cluster, uid, shard, ("because", because.to_owned())]
}

fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Drop for Gauges {
    fn drop(&mut self) {
        self.shift(self.shown.sizes, Sizes::default());
        self.metrics.sessions.dec();
        let nothing = Unfinished::default();
        let session_id = &self.identity.session_id;
        self.metrics.unfinished.set(session_id, 0, nothing);
        // The gauges with labels may already belong to the session's successor, unless its cluster is called otherwise.
        if !self.registry.has_successor(&self.identity) {
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
    use server_core::Span;
    use server_session::Registered;

    use super::*;
    use crate::{registry::Registration, session::SessionHandle};

    fn gauges(
        (uid, name): (&str, &str),
        metrics: &Metrics,
        registry: &Arc<LiveSessions>,
        bytes: usize,
    ) -> (Gauges, Registration) {
        let identity = Arc::new(SessionIdentity {
            cluster_name: name.to_owned(),
            ..crate::session::tests::identity(uid, 0)
        });
        let session = Registered {
            identity: Arc::clone(&identity),
            handle: SessionHandle::new().0,
        };
        let registration = registry.register(session, crate::registry::tests::owner("own"));
        let mut gauges = Gauges::new(&identity, metrics.clone(), registry);
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
        (gauges, registration.expect("it is the newest"))
    }

    type Opened = (Gauges, Registration);

    /// Two sessions by UID and name of their clusters, the older one first, with 100 and 200 bytes of memory.
    fn two_sessions(older: (&str, &str), newer: (&str, &str)) -> (Metrics, Opened, Opened) {
        let metrics = Metrics::register(&mut Registry::default());
        let registry = Arc::new(LiveSessions::new(4));
        let older = gauges(older, &metrics, &registry, 100);
        let newer = gauges(newer, &metrics, &registry, 200);
        (metrics, older, newer)
    }

    fn memory(metrics: &Metrics, labels: &SessionLabels) -> Option<i64> {
        let gauge = metrics.session_memory.get(labels);
        gauge.map(|gauge| gauge.get())
    }

    #[test]
    fn superseded_session_leaves_the_gauges_of_its_successor() {
        let (metrics, older, newer) = two_sessions(("uid", "north"), ("uid", "north"));
        let labels = older.0.labels.clone();
        let age = || metrics.view_age.get(&labels).map(|gauge| gauge.get());
        let miscounted = unconverged_labels(&labels, NUMBER);
        let unconverged = || {
            let gauge = metrics.unconverged.get(&miscounted);
            gauge.map(|gauge| gauge.get())
        };
        drop(older);
        assert_eq!((memory(&metrics, &labels), age()), (Some(200), Some(3.0)));
        assert_eq!(unconverged(), Some(2));
        drop(newer);
        assert_eq!((memory(&metrics, &labels), age()), (None, None));
        assert_eq!(unconverged(), None);
    }

    #[test]
    fn cluster_that_is_called_like_another_leaves_the_gauges_of_that_one() {
        let (metrics, first, second) = two_sessions(("first", "north"), ("second", "north"));
        let labels = first.0.labels.clone();
        assert_eq!(memory(&metrics, &labels), Some(100));
        drop(second);
        assert_eq!(memory(&metrics, &labels), Some(100));
    }

    #[test]
    fn superseded_session_of_another_name_leaves_no_gauges() {
        let (metrics, older, newer) = two_sessions(("uid", "north"), ("uid", "south"));
        let [of_older, of_newer] = [&older, &newer].map(|it| it.0.labels.clone());
        let miscounted = unconverged_labels(&of_older, NUMBER);
        drop(older);
        let left = [of_older, of_newer].map(|labels| memory(&metrics, &labels));
        assert_eq!(left, [None, Some(200)]);
        assert!(metrics.unconverged.get(&miscounted).is_none());
    }
}
