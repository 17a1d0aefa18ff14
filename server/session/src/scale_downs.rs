//! The last deletion of each ReplicaSet, for people who ask why these pods were deleted. Later retries, status writes and creates do not
//! replace it.
//!
//! The numbers of a deletion take little memory; its pods take more. Beyond a limit, the pods of the oldest deletions are dropped, and
//! their numbers stay.

use std::collections::BTreeMap;

use decree::v1;
use server_core::{ActionKind, Answered, BatchId, Held, RankedPod, ScaleDown, Uid};

use crate::wire::{self, encode};

/// The maximum number of victims that are kept of several batches.
const CHOSEN_MAX: usize = 20;
/// The maximum memory in bytes of the pods of all deletions, and again of their numbers; and its share of the memory limit of a session.
const BYTES_MAX: usize = 6 << 20;
const SHARE: usize = 32;
/// The memory in bytes of a deletion without its pods.
const SCALE_DOWN_BYTES: usize = 300;

/// The last deletions of a session.
#[derive(Clone, Debug)]
pub(crate) struct ScaleDowns {
    by_set: BTreeMap<Uid, Last>,
    /// The ReplicaSets, the oldest deletion first.
    order: BTreeMap<u64, Uid>,
    /// The first deletion whose pods were not dropped.
    whole_from: u64,
    next: u64,
    /// The memory of the pods.
    bytes: usize,
    /// The limit for the pods, and again for the numbers.
    bytes_max: usize,
}

/// The last deletion of a ReplicaSet.
#[derive(Clone, Debug)]
struct Last {
    number: u64,
    scale_down: ScaleDown,
    /// Whether a further batch begins another deletion.
    is_over: bool,
}

// === impl ScaleDowns ===

impl ScaleDowns {
    /// Starts empty, for a session with this memory limit.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            by_set: BTreeMap::new(),
            order: BTreeMap::new(),
            whole_from: 0,
            next: 0,
            bytes: 0,
            bytes_max: BYTES_MAX.min(bytes_max / SHARE),
        }
    }

    pub(crate) fn forget(&mut self, set: &Uid) {
        self.remove(set);
    }

    pub(crate) fn get(&self, set: &Uid) -> Option<v1::ScaleDown> {
        self.by_set.get(set).map(|last| encoded(&last.scale_down))
    }

    /// Adds a deletion. A batch that continues the deletion before it becomes part of that deletion.
    pub(crate) fn decided(&mut self, mut scale_down: ScaleDown) {
        let set = scale_down.key.uid.clone();
        let last = self.remove(&set);
        if let Some(last) = last.filter(|last| last.continues_in(&scale_down)) {
            scale_down = joined(last.scale_down, scale_down);
        }
        self.bytes += bytes(&scale_down.pods);
        self.order.insert(self.next, set.clone());
        let last = Last {
            number: self.next,
            scale_down,
            is_over: false,
        };
        self.by_set.insert(set, last);
        self.next += 1;
        self.drop_oldest();
    }

    /// Drops the pods of the oldest deletions, and the oldest deletions, until the rest is within the limits.
    fn drop_oldest(&mut self) {
        while self.bytes > self.bytes_max
            && let Some((number, oldest)) = self.order.range(self.whole_from..).next()
        {
            self.whole_from = number + 1;
            if let Some(last) = self.by_set.get_mut(oldest) {
                self.bytes -= bytes(&last.scale_down.pods);
                last.scale_down.pods = Vec::new();
            }
        }
        while self.by_set.len() * SCALE_DOWN_BYTES > self.bytes_max
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, set: &Uid) -> Option<Last> {
        let last = self.by_set.remove(set)?;
        self.order.remove(&last.number);
        self.bytes -= bytes(&last.scale_down.pods);
        Some(last)
    }

    /// Takes the result of a batch. The deletion is over if pods were created, or if all surplus pods were deleted.
    pub(crate) fn answered(&mut self, answered: &Answered) {
        let Answered {
            key,
            batch,
            action,
            counts,
            ..
        } = answered;
        let last = self.by_set.get(&key.uid);
        let is_over = match action {
            ActionKind::Create => counts.done > 0,
            ActionKind::Delete => {
                let is_done = counts.failed == 0 && counts.not_started == 0;
                is_done && last.is_some_and(|last| last.is_all_of(*batch))
            }
            ActionKind::Claim | ActionKind::WriteStatus => false,
        };
        if is_over {
            self.end(&key.uid);
        }
    }

    /// Ends the last deletion of a ReplicaSet, so that later victims are another one.
    pub(crate) fn end(&mut self, set: &Uid) {
        if let Some(last) = self.by_set.get_mut(set) {
            last.is_over = true;
        }
    }
}

impl Held for ScaleDowns {
    fn bytes(&self) -> usize {
        let Self {
            by_set,
            order: _,
            whole_from: _,
            next: _,
            bytes,
            bytes_max: _,
        } = self;
        bytes + by_set.len() * SCALE_DOWN_BYTES
    }
}

// === impl Last ===

impl Last {
    /// Returns whether another batch deletes the rest of this one: more pods than one batch may have, or pods whose deletion was refused.
    const fn continues_in(&self, next: &ScaleDown) -> bool {
        let last = &self.scale_down;
        !self.is_over && next.to == last.to && next.from <= last.from
    }

    /// Returns whether `batch` is its last batch, and no surplus pod remains after it.
    fn is_all_of(&self, batch: BatchId) -> bool {
        let last = &self.scale_down;
        let surplus = usize::try_from(last.from.saturating_sub(last.to));
        last.batch == batch && surplus.is_ok_and(|surplus| surplus <= last.chosen)
    }
}

/// Joins a deletion with the results of its earlier batches.
fn joined(before: ScaleDown, next: ScaleDown) -> ScaleDown {
    let gone = before.from.abs_diff(next.from) as usize;
    let is_new = |pod: &RankedPod| next.pods.iter().any(|new| new.uid == pod.uid);
    let mut pods: Vec<_> = before.pods.into_iter().filter(|pod| pod.chosen).collect();
    pods.retain(|pod| !is_new(pod));
    pods.extend(next.pods);
    let chosen = pods.iter().filter(|pod| pod.chosen).count();
    pods.drain(..chosen.saturating_sub(CHOSEN_MAX));
    ScaleDown {
        from: before.from,
        at: before.at,
        chosen: gone.saturating_add(next.chosen),
        pods,
        ..next
    }
}

fn bytes(pods: &[RankedPod]) -> usize {
    pods.iter().map(Held::bytes).sum()
}

fn encoded(scale_down: &ScaleDown) -> v1::ScaleDown {
    let ScaleDown {
        key: _,
        at,
        batch,
        from,
        to,
        chosen,
        pods,
    } = scale_down;
    let value = |(rule, value)| v1::RankValue {
        rule: wire::rule(rule).into(),
        value,
    };
    let pods = pods.iter().map(|pod| v1::RankedPod {
        name: pod.name.as_ref().to_owned(),
        chosen: pod.chosen,
        reason: pod.reason.clone().map(encode::reason),
        values: pod.values().map(value).into(),
    });
    v1::ScaleDown {
        time: Some(encode::time(*at)),
        batch_id: batch.0,
        from: *from,
        to: *to,
        chosen: wire::int32(*chosen),
        pods: pods.collect(),
    }
}

#[cfg(test)]
mod tests;
