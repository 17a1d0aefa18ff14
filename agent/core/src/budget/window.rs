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
    buckets: VecDeque<Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    begins: Timestamp,
    operations: u32,
    pods_min: u32,
    pods_max: u32,
    wanted_max: u32,
}

/// The current and desired pods of a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) pods: u32,
    /// The sum of `spec.replicas`.
    pub(crate) wanted: u32,
}

// === impl Window ===

impl Window {
    pub(super) fn count(&mut self, now: Timestamp, sizes: Sizes) {
        let Sizes { pods, wanted } = sizes;
        let is_open = |step: &&mut Bucket| since(now, step.begins) < BUCKET;
        match self.buckets.back_mut().filter(is_open) {
            Some(step) => {
                step.operations = step.operations.saturating_add(1);
                step.pods_min = step.pods_min.min(pods);
                step.pods_max = step.pods_max.max(pods);
                step.wanted_max = step.wanted_max.max(wanted);
            }
            None => self.buckets.push_back(Bucket {
                begins: now,
                operations: 1,
                pods_min: pods,
                pods_max: pods,
                wanted_max: wanted,
            }),
        }
    }

    /// Forgets buckets older than the window.
    pub(super) fn slide(&mut self, now: Timestamp) {
        let is_past = |step: &Bucket| after(step.begins, BUCKET + SPAN) <= now;
        while self.buckets.front().is_some_and(is_past) {
            self.buckets.pop_front();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(super) fn operations(&self) -> u32 {
        let operations = self.buckets.iter().map(|step| step.operations);
        operations.fold(0, u32::saturating_add)
    }

    /// The fewest pods at the start of an operation; `pods` is the present number.
    pub(super) fn pods_min(&self, pods: u32) -> u32 {
        self.buckets
            .iter()
            .map(|step| step.pods_min)
            .fold(pods, u32::min)
    }

    /// The most pods, likewise.
    pub(super) fn pods_max(&self, pods: u32) -> u32 {
        self.buckets
            .iter()
            .map(|step| step.pods_max)
            .fold(pods, u32::max)
    }

    /// The most desired pods, likewise.
    pub(super) fn wanted_max(&self, wanted: u32) -> u32 {
        self.buckets
            .iter()
            .map(|step| step.wanted_max)
            .fold(wanted, u32::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scope with as many pods as desired.
    const fn sizes(pods: u32) -> Sizes {
        Sizes { pods, wanted: pods }
    }

    fn at(seconds: u64) -> Timestamp {
        after(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    #[test]
    fn operation_counts_for_a_minute_and_a_step_at_most() {
        let mut window = Window::default();
        window.count(at(0), sizes(10));
        window.count(at(4), sizes(9));
        window.count(at(5), sizes(8));
        window.slide(at(64));
        assert_eq!(window.operations(), 3, "that of 4 s is not a minute old");
        window.slide(at(65));
        assert_eq!((window.operations(), window.pods_max(0)), (1, 8));
        window.slide(at(70));
        assert!(window.is_empty());
    }

    #[test]
    fn window_takes_as_little_room_for_a_million_operations_as_for_a_few() {
        let mut window = Window::default();
        for number in 0..1_000_000_u64 {
            let now = at(number / 1_000);
            window.slide(now);
            window.count(now, sizes(5));
        }
        assert!(
            window.buckets.len() <= 14,
            "{} buckets",
            window.buckets.len()
        );
        assert!(window.operations() >= 60_000, "{}", window.operations());
    }

    #[test]
    fn clock_that_goes_back_loses_no_count() {
        let mut window = Window::default();
        window.count(at(100), sizes(1));
        window.count(at(50), sizes(2));
        window.slide(at(50));
        assert_eq!(window.operations(), 2);
    }

    #[test]
    fn pods_are_the_fewest_and_the_most_of_the_window() {
        let mut window = Window::default();
        for (seconds, pods) in [(0, 5), (1, 9), (30, 7)] {
            window.count(at(seconds), sizes(pods));
        }
        assert_eq!((window.pods_min(6), window.pods_max(6)), (5, 9));
        assert_eq!((window.pods_min(3), window.pods_max(12)), (3, 12));
        assert_eq!((window.wanted_max(6), window.wanted_max(12)), (9, 12));
    }
}
