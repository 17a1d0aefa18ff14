//! The values of a pod that the order of deletion reads, and the sort keys made of them.

use crate::{
    labels::Labels,
    node::Hint,
    object::{PodState, Timestamp, Uid},
    preferences::Preferences,
};

/// The number of low bits of a key that hold a [`bucket`].
pub(super) const BUCKET_BITS: u32 = 7;
/// The lowest of the bits above the bucket that hold the deletion cost.
pub(super) const COST_BIT: u32 = 32;
/// The lowest of the bits above the bucket that hold the place by the preferences, and their number.
pub(super) const PREFERENCE_BIT: u32 = 64;
pub(super) const PLACE_BITS: u32 = 32;

/// The values of one active pod that the order of deletion reads.
#[derive(Clone, Debug)]
pub struct Candidate<'a, I> {
    /// The caller's reference to the pod.
    pub id: I,
    /// The node; `None` while unassigned.
    pub node: Option<&'a str>,
    /// Phase, readiness, deletion cost, restarts and age.
    pub state: &'a PodState,
    /// The number of active related pods on its node (spec 7.3).
    pub rank: u32,
    /// The last criterion of the order.
    pub uid: &'a Uid,
    /// The values that preferences read; `None` without preferences, so that the choice among many pods moves little memory.
    pub preferred: Option<Box<Preferred<'a>>>,
}

/// The values of a pod that the preferences of its ReplicaSet read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preferred<'a> {
    /// The preferences, the same for all candidates.
    pub preferences: Option<&'a Preferences>,
    /// Its labels; `None` counts as no labels.
    pub labels: Option<&'a Labels>,
    /// The number of active pods on its node, whoever owns them; 0 while unassigned.
    pub on_node: u32,
    /// Why it is expected to be evicted.
    pub hint: Option<Hint>,
    /// The domain of its node, for the preference to spread pods; `None` without one.
    pub domain: Option<&'a str>,
    /// The number of pods in its domain when it is the next of them to go. The choice counts them; give 0.
    pub height: u32,
    /// The deletion cost that it answered when it was asked; `None` if it counts as its annotation says.
    pub asked: Option<i32>,
}

impl<'a, I> Candidate<'a, I> {
    pub(crate) fn preferred(&self) -> Preferred<'a> {
        self.preferred.as_deref().copied().unwrap_or_default()
    }

    /// Packs the rules into two numbers, first rule highest; the smaller number comes first. The class contains the rules before restarts;
    /// the tail contains restarts, sidecar restarts and age. The class has room for the place by the preferences, which comparing all pods
    /// gives.
    pub(super) fn class_and_tail(&self, now: Timestamp) -> (u128, u128) {
        let PodState {
            created,
            deleting: _,
            phase,
            ready,
            deletion_cost: _,
            foreign_cost: _,
            restarts,
            sidecar_restarts,
            disruption_target: _,
            leaving: _,
        } = *self.state;
        let assigned = u128::from(self.node.is_some()) << 99;
        let phase = u128::from(phase.ordinal()) << 97;
        let is_ready = u128::from(ready.ready) << 96;
        let cost = u128::from(ascending(self.cost())) << COST_BIT;
        let class = assigned | phase | is_ready | cost | u128::from(!self.rank);
        let since = bucket(self.ready_since(), now);
        let restarts = u128::from(!ascending(restarts)) << 39;
        let sidecar_restarts = u128::from(!ascending(sidecar_restarts)) << BUCKET_BITS;
        let tail = restarts | sidecar_restarts | u128::from(bucket(created, now));
        ((class << BUCKET_BITS) | u128::from(since), tail)
    }

    pub(super) fn cost(&self) -> i32 {
        let asked = self.preferred.as_ref().and_then(|it| it.asked);
        asked.unwrap_or(self.state.deletion_cost)
    }

    /// Returns since when the pod is ready; `None` if it is not ready or the time is unknown.
    pub(super) fn ready_since(&self) -> Option<Timestamp> {
        self.state.ready.since.filter(|_| self.state.ready.ready)
    }
}

/// Maps a number to an unsigned one with the same order.
const fn ascending(number: i32) -> u32 {
    number.cast_unsigned() ^ (1 << 31)
}

/// Returns 0 for an absent time, 1 for a time that is not in the past, and 2 + floor(log2(nanoseconds ago)) for the rest. A younger time
/// gives a smaller number (spec 7.4).
pub(super) fn bucket(time: Option<Timestamp>, now: Timestamp) -> u8 {
    let Some(time) = time else { return 0 };
    let ago = now.since(time).0;
    ago.checked_ilog2().map_or(1, |log| log as u8 + 2)
}
