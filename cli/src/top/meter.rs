//! Counts decisions as they are made, and computes rates.

use std::{collections::BTreeMap, time::Duration};

use decree::v1;

/// Decisions and operations, as counts or per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) decisions: f64,
    pub(super) operations: f64,
}

/// The counts since the last [`take`](Self::take), or the rates of one interval.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// By cluster and uid.
    sets: BTreeMap<(String, String), Rate>,
    /// The number of decisions that were not counted, because the server made more than the client read.
    pub(super) missed: u64,
}

// === impl Meter ===

impl Meter {
    pub(super) fn count(&mut self, next: &v1::WatchDecisionsResponse) {
        self.missed = self.missed.saturating_add(next.missed);
        let Some(decision) = &next.decision else {
            return;
        };
        let uid = decision
            .replica_set
            .as_ref()
            .map_or("", |object| &object.uid);
        let key = (decision.cluster.clone(), uid.to_owned());
        let counts = self.sets.entry(key).or_default();
        counts.decisions += 1.0;
        counts.operations += f64::from(decision.operations.max(0));
    }

    /// The rates of the counts in `time`. Restarts the count.
    pub(super) fn take(&mut self, time: Duration) -> Self {
        let mut rates = std::mem::take(self);
        let seconds = time.as_secs_f64().max(f64::MIN_POSITIVE);
        for rate in rates.sets.values_mut() {
            rate.decisions /= seconds;
            rate.operations /= seconds;
        }
        rates
    }

    /// The rates of a ReplicaSet.
    pub(super) fn of_set(&self, cluster: &str, uid: &str) -> Rate {
        let key = (cluster.to_owned(), uid.to_owned());
        self.sets.get(&key).copied().unwrap_or_default()
    }

    /// The rates of all ReplicaSets of a cluster together.
    pub(super) fn of_cluster(&self, cluster: &str) -> Rate {
        let its = self.sets.iter().filter(|((it, _), _)| it == cluster);
        its.fold(Rate::default(), |sum, (_, rate)| Rate {
            decisions: sum.decisions + rate.decisions,
            operations: sum.operations + rate.operations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(uid: &str, operations: i32) -> v1::WatchDecisionsResponse {
        v1::WatchDecisionsResponse {
            decision: Some(v1::DecisionRecord {
                cluster: "kind".to_owned(),
                replica_set: Some(v1::ObjectRef {
                    uid: uid.to_owned(),
                    ..v1::ObjectRef::default()
                }),
                operations,
                ..v1::DecisionRecord::default()
            }),
            missed: 3,
        }
    }

    #[test]
    fn rates_are_of_one_interval_by_replica_set_and_cluster() {
        let mut meter = Meter::default();
        for (uid, operations) in [("a", 10), ("a", 20), ("b", 1), ("b", -1)] {
            meter.count(&decided(uid, operations));
        }
        let rates = meter.take(Duration::from_secs(2));
        let rate = |decisions, operations| Rate {
            decisions,
            operations,
        };
        assert_eq!(rates.of_set("kind", "a"), rate(1.0, 15.0));
        assert_eq!(rates.of_set("kind", "b"), rate(1.0, 0.5));
        assert_eq!(rates.of_set("other", "a"), rate(0.0, 0.0));
        assert_eq!(rates.of_cluster("kind"), rate(2.0, 15.5));
        assert_eq!(rates.missed, 12);
        let next = meter.take(Duration::from_secs(2));
        assert_eq!((next.of_set("kind", "a"), next.missed), (rate(0.0, 0.0), 0));
    }
}
