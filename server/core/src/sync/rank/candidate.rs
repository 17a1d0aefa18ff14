//! What the order of deletion reads of a pod, and the keys that it makes of it.

use crate::{
    compact_uid::CompactUid,
    object::{PodState, Timestamp},
};

/// How many low bits of a key hold a [`bucket`].
pub(super) const BUCKET_BITS: u32 = 7;

/// What the order of deletion reads of one active pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a, I> {
    /// How the caller finds the pod again.
    pub(crate) id: I,
    /// The node; `None` while unassigned.
    pub(crate) node: Option<&'a str>,
    /// Phase, readiness, deletion cost, restarts and age.
    pub(crate) state: &'a PodState,
    /// How many active related pods its node has (spec 7.3).
    pub(crate) rank: u32,
    /// The last word of the order.
    pub(crate) uid: &'a CompactUid,
}

// === impl Candidate ===

impl<I> Candidate<'_, I> {
    /// Packs the rules into two numbers, first rule highest, of which the smaller goes first: the class, which is all that comes before
    /// restarts; and the tail, which is restarts, sidecar restarts and age.
    pub(super) fn class_and_tail(&self, now: Timestamp) -> (u128, u128) {
        let PodState {
            created,
            deleting: _,
            phase,
            ready,
            deletion_cost,
            restarts,
            sidecar_restarts,
            disruption_target: _,
        } = *self.state;
        let assigned = u128::from(self.node.is_some()) << 67;
        let phase = u128::from(phase.ordinal()) << 65;
        let cost = u128::from(ascending(deletion_cost)) << 32;
        let class =
            assigned | phase | u128::from(ready.ready) << 64 | cost | u128::from(!self.rank);
        let since = bucket(self.ready_since(), now);
        let restarts = u128::from(!ascending(restarts)) << 39;
        let sidecar_restarts = u128::from(!ascending(sidecar_restarts)) << BUCKET_BITS;
        let tail = restarts | sidecar_restarts | u128::from(bucket(created, now));
        ((class << BUCKET_BITS) | u128::from(since), tail)
    }

    /// Returns since when the pod is ready, if it is and that is known.
    pub(super) fn ready_since(&self) -> Option<Timestamp> {
        self.state.ready.since.filter(|_| self.state.ready.ready)
    }
}

/// Maps a number to one that sorts alike without a sign.
const fn ascending(number: i32) -> u32 {
    number.cast_unsigned() ^ (1 << 31)
}

/// Returns 0 for an absent time, 1 for one that is not in the past, and 2 + floor(log2(nanoseconds ago)) for the rest: younger is
/// smaller (spec 7.4).
pub(super) fn bucket(time: Option<Timestamp>, now: Timestamp) -> u8 {
    let Some(time) = time else { return 0 };
    let ago = now.since(time).0;
    ago.checked_ilog2().map_or(1, |log| log as u8 + 2)
}
