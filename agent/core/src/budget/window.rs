//! The operations started in the last minute, and the pods meanwhile.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

use crate::backoff::{after, since};

/// How long an operation counts at least, and how long a scope gets no second warning.
pub(super) const SPAN: Duration = Duration::from_secs(60);
/// How much longer an operation counts at most: operations that start within that time share a count.
pub(super) const BUCKET: Duration = Duration::from_secs(5);

/// A window that ends now and slides by buckets, so that its size is bounded.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// Each with the time when it begins.
    buckets: VecDeque<(Timestamp, Count)>,
}

/// Operations, and the extremes of the sizes meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) operations: u32,
    pub(super) pods_min: u32,
    pub(super) pods_max: u32,
    pub(super) wanted_max: u32,
}

/// The current and desired pods of a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) pods: u32,
    /// The sum of `spec.replicas`.
    pub(crate) wanted: u32,
}

// === impl Count ===

impl Count {
    pub(super) const fn new(operations: u32, sizes: Sizes) -> Self {
        Self {
            operations,
            pods_min: sizes.pods,
            pods_max: sizes.pods,
            wanted_max: sizes.wanted,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            pods_min: self.pods_min.min(other.pods_min),
            pods_max: self.pods_max.max(other.pods_max),
            wanted_max: self.wanted_max.max(other.wanted_max),
        }
    }
}

// === impl Window ===

impl Window {
    pub(super) fn add(&mut self, now: Timestamp, count: Count) {
        match self.buckets.back_mut() {
            Some((begins, last)) if since(now, *begins) < BUCKET => *last = last.and(count),
            Some(_) | None => self.buckets.push_back((now, count)),
        }
    }

    /// Forgets buckets older than the window.
    pub(super) fn slide(&mut self, now: Timestamp) {
        let is_past = |(begins, _): &(Timestamp, Count)| after(*begins, BUCKET + SPAN) <= now;
        while self.buckets.front().is_some_and(is_past) {
            self.buckets.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(super) fn operations(&self) -> u32 {
        let operations = self.buckets.iter().map(|(_, count)| count.operations);
        operations.fold(0, u32::saturating_add)
    }

    /// All counts of the window, with one more.
    pub(super) fn total(&self, more: Count) -> Count {
        let counts = self.buckets.iter().map(|(_, count)| *count);
        counts.fold(more, Count::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    /// An operation in a scope with as many pods as desired.
    const fn of(pods: u32) -> Count {
        Count::new(1, Sizes { pods, wanted: pods })
    }

    #[test]
    fn operation_counts_for_a_minute_and_a_step_at_most() {
        let mut window = Window::default();
        window.add(at(0), of(10));
        window.add(at(4), of(9));
        window.add(at(5), of(8));
        window.slide(at(64));
        assert_eq!(window.operations(), 3, "that of 4 s is not a minute old");
        window.slide(at(65));
        assert_eq!((window.operations(), window.total(of(0)).pods_max), (1, 8));
        window.slide(at(70));
        assert!(window.is_empty());
    }

    #[test]
    fn window_takes_as_little_room_for_a_million_operations_as_for_a_few() {
        let mut window = Window::default();
        for number in 0..1_000_000_u64 {
            let now = at(number / 1_000);
            window.slide(now);
            window.add(now, of(5));
        }
        let buckets = window.buckets.len();
        assert!(buckets <= 14, "{buckets} buckets");
        assert!(window.operations() >= 60_000, "{}", window.operations());
    }

    #[test]
    fn clock_that_goes_back_loses_no_count() {
        let mut window = Window::default();
        window.add(at(100), of(1));
        window.add(at(50), of(2));
        window.slide(at(50));
        assert_eq!(window.operations(), 2);
    }

    #[test]
    fn pods_are_the_fewest_and_the_most_of_the_window() {
        let mut window = Window::default();
        for (seconds, pods) in [(0, 5), (1, 9), (30, 7)] {
            window.add(at(seconds), of(pods));
        }
        for (more, min, max) in [(6, 5, 9), (3, 3, 9), (12, 5, 12)] {
            let total = window.total(of(more));
            assert_eq!(
                (total.pods_min, total.pods_max, total.wanted_max),
                (min, max, max)
            );
            assert_eq!(total.operations, 4);
        }
    }
}
