//! Which batch makes the next call: batches of a weight take turns, and heavy batches leave room for light ones.
//!
//! How long a call takes is mostly how many others the API server has before it. So a ReplicaSet that needs one pod waits as long as
//! the calls that a large one has in flight, even if its own call is the next to be made. While light batches come, heavy ones
//! together keep to a share of the calls; that share is theirs, so neither kind can starve the other.
//!
//! Calls of heavy batches begin in groups: once all places are taken, none begins before half of them are free. What arrives
//! together is worked on together, from the socket to the log of etcd, which costs everyone an eighth less time than a trickle of
//! single calls. A light call never waits for a group.

use std::collections::VecDeque;

/// A batch of more operations than this is heavy.
const LIGHT_MAX: u32 = 32;
/// The share of heavy batches beside light ones: one of this many calls. With that share of 64 calls, the API server still creates about two
/// thirds of the pods, and a light batch hardly notices.
const HEAVY_SHARE: usize = 8;
/// The most calls of that share.
const HEAVY_CALLS_MAX: usize = 8;
/// For how many of their own calls heavy batches leave room after a light call: about a tenth of a second. At a moment without calls in
/// flight there is no competition, and the rest is dropped.
const YIELDED_CALLS: u32 = 128;

/// How much work a batch is for the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Many operations.
    Heavy,
    /// A few creates or deletes, for which somebody waits.
    Light,
    /// Claims and a status. Any ReplicaSet has them, also one that scales far, so they tell nothing about other batches.
    Neutral,
}

/// The batches with work, in the order of their turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    light: VecDeque<u64>,
    heavy: VecDeque<u64>,
    calls: usize,
    heavy_calls: usize,
    yields: u32,
    /// Whether a group of heavy calls is complete, so that the next one waits.
    grouped: bool,
}

impl Weight {
    pub(super) const fn of(operations: u32, counts_pods: bool) -> Self {
        if operations > LIGHT_MAX {
            Self::Heavy
        } else if counts_pods {
            Self::Light
        } else {
            Self::Neutral
        }
    }
}

impl Turns {
    /// Puts a batch last among the batches of its weight.
    pub(super) fn push(&mut self, batch: u64, weight: Weight) {
        match weight {
            Weight::Heavy => self.heavy.push_back(batch),
            Weight::Light | Weight::Neutral => self.light.push_back(batch),
        }
    }

    /// Takes the next batch, for a cluster that allows `calls_max` calls and has one free.
    pub(super) fn pop(&mut self, calls_max: usize) -> Option<u64> {
        let has_less_than_its_share =
            self.heavy_calls < (calls_max / HEAVY_SHARE).clamp(1, HEAVY_CALLS_MAX);
        if has_less_than_its_share && let Some(batch) = self.heavy.pop_front() {
            return Some(batch);
        }
        let light = self.light.pop_front();
        if light.is_some() || self.yields > 0 {
            return light;
        }
        self.grouped &= self.calls * 2 > calls_max;
        if self.grouped {
            return None;
        }
        self.grouped = self.calls + 1 >= calls_max;
        self.heavy.pop_front()
    }

    pub(super) const fn note_call(&mut self, weight: Weight) {
        self.calls += 1;
        match weight {
            Weight::Heavy => {
                self.heavy_calls += 1;
                self.yields = self.yields.saturating_sub(1);
            }
            Weight::Light => self.yields = YIELDED_CALLS,
            Weight::Neutral => {}
        }
    }

    pub(super) const fn note_answer(&mut self, weight: Weight) {
        self.calls -= 1;
        if matches!(weight, Weight::Heavy) {
            self.heavy_calls -= 1;
        }
        if self.calls == 0 {
            self.yields = 0;
        }
    }

    /// Forgets all batches; calls in flight stay.
    pub(super) fn clear(&mut self) {
        self.light.clear();
        self.heavy.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS_MAX: usize = 40;
    const HEAVY: u64 = 1;
    const LIGHT: u64 = 2;

    /// Lets a heavy batch make calls for as long as it may, up to all that there are.
    fn fill(turns: &mut Turns) -> usize {
        while turns.calls < CALLS_MAX {
            turns.push(HEAVY, Weight::Heavy);
            if turns.pop(CALLS_MAX) != Some(HEAVY) {
                break;
            }
            turns.note_call(Weight::Heavy);
        }
        turns.heavy_calls
    }

    #[test]
    fn heavy_batch_has_all_calls_where_it_is_alone() {
        let mut turns = Turns::default();
        turns.note_call(Weight::Neutral);
        assert_eq!(fill(&mut turns), CALLS_MAX - 1);
    }

    #[test]
    fn heavy_batch_keeps_to_its_share_for_a_while_after_a_light_one() {
        let mut turns = Turns::default();
        turns.note_call(Weight::Light);
        assert_eq!(fill(&mut turns), CALLS_MAX / HEAVY_SHARE);
        for _ in 0..YIELDED_CALLS {
            turns.note_call(Weight::Heavy);
            turns.note_answer(Weight::Heavy);
        }
        assert_eq!(fill(&mut turns), CALLS_MAX - 1);
    }

    #[test]
    fn share_of_many_calls_is_eight() {
        let mut turns = Turns::default();
        turns.note_call(Weight::Light);
        turns.heavy_calls = HEAVY_CALLS_MAX - 1;
        for next in [Some(HEAVY), None] {
            turns.push(HEAVY, Weight::Heavy);
            assert_eq!(turns.pop(256), next);
            turns.note_call(Weight::Heavy);
        }
    }

    #[test]
    fn light_batch_of_a_quiet_time_is_forgotten() {
        let mut turns = Turns::default();
        turns.note_call(Weight::Light);
        turns.note_answer(Weight::Light);
        assert_eq!(fill(&mut turns), CALLS_MAX);
    }

    #[test]
    fn light_batch_goes_first_once_the_heavy_one_has_its_share() {
        let mut turns = Turns::default();
        turns.push(LIGHT, Weight::Light);
        turns.push(HEAVY, Weight::Heavy);
        assert_eq!(turns.pop(CALLS_MAX), Some(HEAVY));
        for _ in 0..CALLS_MAX / HEAVY_SHARE {
            turns.note_call(Weight::Heavy);
        }
        turns.push(HEAVY, Weight::Heavy);
        assert_eq!(turns.pop(CALLS_MAX), Some(LIGHT));
        assert_eq!(turns.pop(CALLS_MAX), Some(HEAVY), "none else is there");
    }

    #[test]
    fn heavy_calls_begin_in_groups_and_light_ones_at_once() {
        let mut turns = Turns::default();
        assert_eq!(fill(&mut turns), CALLS_MAX);
        for _ in 1..CALLS_MAX / 2 {
            turns.note_answer(Weight::Heavy);
            assert_eq!(turns.pop(CALLS_MAX), None, "{} in flight", turns.calls);
        }
        turns.push(LIGHT, Weight::Neutral);
        assert_eq!(turns.pop(CALLS_MAX), Some(LIGHT));
        turns.note_answer(Weight::Heavy);
        assert_eq!(fill(&mut turns), CALLS_MAX);
    }

    #[test]
    fn one_call_at_a_time_is_the_heavy_ones_share_too() {
        let mut turns = Turns::default();
        turns.note_call(Weight::Light);
        turns.push(HEAVY, Weight::Heavy);
        assert_eq!(turns.pop(1), Some(HEAVY));
    }
}
