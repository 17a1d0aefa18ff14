//! Gauges of a process with several agents, one for each of its shards: each agent adds its share.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use prometheus_client::metrics::gauge::Gauge;

/// One agent's share of a gauge. Clones are the same share, which is subtracted when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct SummedGauge(Arc<Summand>);

#[derive(Debug, Default)]
struct Summand {
    total: Gauge,
    added: AtomicI64,
}

// === impl SummedGauge ===

impl SummedGauge {
    /// Creates a share of 0 in this gauge.
    pub(super) fn of(total: Gauge) -> Self {
        let added = AtomicI64::new(0);
        Self(Arc::new(Summand { total, added }))
    }

    pub(super) fn another(&self) -> Self {
        Self::of(self.gauge())
    }

    pub(super) fn gauge(&self) -> Gauge {
        self.0.total.clone()
    }

    /// Replaces the present share.
    pub(super) fn set(&self, value: usize) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        // The gauge publishes no other memory.
        let before = self.0.added.swap(value, Ordering::Relaxed);
        self.0.total.inc_by(value.wrapping_sub(before));
    }
}

impl Drop for Summand {
    fn drop(&mut self) {
        self.total.dec_by(*self.added.get_mut());
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
