//! What the order of deletion reads of a pod, and the keys that it makes of it.

use crate::object::{Phase, Pod, Ready, Timestamp, Uid};

/// How many low bits of a key hold a [`bucket`].
pub(super) const BUCKET_BITS: u32 = 7;

/// What the order of deletion reads of one active pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a, I> {
    /// How the caller finds the pod again.
    pub(crate) id: I,
    /// The node; `None` while unassigned.
    pub(crate) node: Option<&'a str>,
    /// How far it has come.
    pub(crate) phase: Phase,
    /// The condition `Ready`.
    pub(crate) ready: Ready,
    /// The deletion cost.
    pub(crate) deletion_cost: i32,
    /// How many active related pods its node has (spec 7.3).
    pub(crate) rank: u32,
    /// The highest restart count of the regular containers.
    pub(crate) restarts: i32,
    /// The highest restart count of the sidecars.
    pub(crate) sidecar_restarts: i32,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// The last word of the order.
    pub(crate) uid: &'a Uid,
}

// === impl Candidate ===

impl<'a> Candidate<'a, ()> {
    pub(super) fn new(pod: &'a Pod, rank: u32) -> Self {
        Self {
            id: (),
            node: pod.node.as_deref(),
            phase: pod.phase,
            ready: pod.ready,
            deletion_cost: pod.deletion_cost,
            rank,
            restarts: pod.restarts,
            sidecar_restarts: pod.sidecar_restarts,
            created: pod.created,
            uid: &pod.uid,
        }
    }
}

impl<I> Candidate<'_, I> {
    /// Packs what comes before times and restarts, first rule highest: the smaller goes first.
    pub(super) fn class(&self) -> u128 {
        let assigned = u128::from(self.node.is_some());
        let phase = u128::from(self.phase.ordinal());
        let ready = u128::from(self.ready.ready);
        let cost = u128::from(ascending(self.deletion_cost));
        (assigned << 67) | (phase << 65) | (ready << 64) | (cost << 32) | u128::from(!self.rank)
    }

    /// Packs restarts, sidecar restarts and age: the smaller goes first.
    pub(super) fn tail(&self, now: Timestamp) -> u128 {
        let restarts = u128::from(!ascending(self.restarts));
        let sidecar_restarts = u128::from(!ascending(self.sidecar_restarts));
        (restarts << 39) | (sidecar_restarts << BUCKET_BITS) | u128::from(bucket(self.created, now))
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
