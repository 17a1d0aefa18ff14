//! The operations started in the last minute, and the pods meanwhile.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

use crate::pace::{after, since};

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

/// Operations, and the highest number of pods meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) operations: u32,
    pub(super) pods: u32,
}

impl Count {
    /// One operation in a scope with this many pods.
    pub(super) const fn one(pods: u32) -> Self {
        Self {
            operations: 1,
            pods,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            pods: self.pods.max(other.pods),
        }
    }
}

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

    #[test]
    fn operation_counts_for_a_minute_and_a_step_at_most() {
        let mut window = Window::default();
        window.add(at(0), Count::one(10));
        window.add(at(4), Count::one(9));
        window.add(at(5), Count::one(8));
        window.slide(at(64));
        assert_eq!(window.operations(), 3, "that of 4 s is not a minute old");
        window.slide(at(65));
        assert_eq!(
            (window.operations(), window.total(Count::one(0)).pods),
            (1, 8)
        );
        window.slide(at(70));
        assert!(window.is_empty());
    }

    #[test]
    fn window_takes_as_little_room_for_a_million_operations_as_for_a_few() {
        let mut window = Window::default();
        for number in 0..1_000_000_u64 {
            let now = at(number / 1_000);
            window.slide(now);
            window.add(now, Count::one(5));
        }
        let buckets = window.buckets.len();
        assert!(buckets <= 14, "{buckets} buckets");
        assert!(window.operations() >= 60_000, "{}", window.operations());
    }

    #[test]
    fn clock_that_goes_back_loses_no_count() {
        let mut window = Window::default();
        window.add(at(100), Count::one(1));
        window.add(at(50), Count::one(2));
        window.slide(at(50));
        assert_eq!(window.operations(), 2);
    }

    #[test]
    fn pods_are_the_most_of_the_window() {
        let mut window = Window::default();
        for (seconds, pods) in [(0, 5), (1, 9), (30, 7)] {
            window.add(at(seconds), Count::one(pods));
        }
        for (pods, most) in [(6, 9), (12, 12)] {
            let total = window.total(Count::one(pods));
            assert_eq!((total.operations, total.pods), (4, most));
        }
    }
}
