//! Gauges of a process with several agents, one for each shard that it serves: each adds its share.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use prometheus_client::metrics::gauge::Gauge;

/// What one agent adds to a gauge. Clones are the same share, which is taken back when the last of them is dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct SummedGauge(Arc<Summand>);

#[derive(Debug, Default)]
struct Summand {
    total: Gauge,
    added: AtomicI64,
}

// === impl SummedGauge ===

impl SummedGauge {
    /// Returns a share of this gauge that is 0.
    pub(super) fn of(total: Gauge) -> Self {
        let added = AtomicI64::new(0);
        Self(Arc::new(Summand { total, added }))
    }

    /// Returns another share of the same gauge.
    pub(super) fn another(&self) -> Self {
        Self::of(self.gauge())
    }

    pub(super) fn gauge(&self) -> Gauge {
        self.0.total.clone()
    }

    /// Adds this instead of what was added before.
    pub(super) fn set(&self, value: i64) {
        self.0.set(value);
    }
}

// === impl Summand ===

impl Summand {
    fn set(&self, value: i64) {
        // The gauge tells no other memory than its own.
        let before = self.added.swap(value, Ordering::Relaxed);
        self.total.inc_by(value.wrapping_sub(before));
    }
}

impl Drop for Summand {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauge_is_the_sum_of_its_shares_until_they_are_dropped() {
        let one = SummedGauge::default();
        let other = one.another();
        one.set(3);
        other.set(4);
        one.set(1);
        assert_eq!(one.gauge().get(), 5);
        let clone = other.clone();
        drop(other);
        assert_eq!(one.gauge().get(), 5, "a clone is left");
        drop(clone);
        assert_eq!(one.gauge().get(), 1);
    }
}
