//! The last deletion of each ReplicaSet, for people who ask why these pods were deleted. Later retries, status writes and creates do not
//! replace it.
//!
//! The numbers of a deletion take little memory; its pods take more. Beyond a limit, the pods of the oldest deletions are dropped, and
//! their numbers stay.

use std::collections::BTreeMap;

use decree::v1;
use server_core::{ActionKind, Answered, ControllerReport, RankedPod, ScaleDown, Uid};

use crate::wire::{self, encode};

/// The maximum number of victims that are kept of several batches.
const CHOSEN_MAX: usize = 20;
/// The maximum memory in bytes of the pods of all deletions, and again of their numbers; and its share of the memory limit of a session.
const BYTES_MAX: usize = 6 << 20;
const SHARE: usize = 32;
/// The memory in bytes of a deletion without its pods, and of a pod without its texts.
const SCALE_DOWN_BYTES: usize = 300;
const POD_BYTES: usize = 200;

/// The last deletions of a session.
#[derive(Clone, Debug)]
pub(crate) struct ScaleDowns {
    by_set: BTreeMap<Uid, Last>,
    /// The ReplicaSets whose pods are kept, the oldest deletion first.
    whole: BTreeMap<u64, Uid>,
    /// The ReplicaSets whose pods were dropped, the oldest deletion first.
    bare: BTreeMap<u64, Uid>,
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
            whole: BTreeMap::new(),
            bare: BTreeMap::new(),
            next: 0,
            bytes: 0,
            bytes_max: BYTES_MAX.min(bytes_max / SHARE),
        }
    }

    /// Takes a report of a deletion, and returns any other report. A batch that continues the deletion before it becomes part of that
    /// deletion.
    pub(crate) fn take(&mut self, report: ControllerReport) -> Option<ControllerReport> {
        match report {
            ControllerReport::ScaleDown(scale_down) => {
                self.insert(*scale_down);
                return None;
            }
            ControllerReport::Scaled { ref key, .. } => self.end(&key.uid),
            ControllerReport::Answered(ref answered) => self.note_answered(answered),
            ControllerReport::Synced { .. }
            | ControllerReport::StaleViewSkipped { .. }
            | ControllerReport::Quarantined { .. }
            | ControllerReport::PodsDoNotLast { .. }
            | ControllerReport::OrphanMatchesMany { .. }
            | ControllerReport::DeletionAgeRatio(_) => {}
        }
        Some(report)
    }

    pub(crate) fn forget(&mut self, set: &Uid) {
        self.remove(set);
    }

    pub(crate) fn get(&self, set: &Uid) -> Option<v1::ScaleDown> {
        self.by_set.get(set).map(|last| encoded(&last.scale_down))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.by_set.len() * SCALE_DOWN_BYTES
    }

    fn insert(&mut self, mut scale_down: ScaleDown) {
        let set = scale_down.key.uid.clone();
        let last = self.remove(&set);
        if let Some(last) = last.filter(|last| last.continues_in(&scale_down)) {
            scale_down = joined(last.scale_down, scale_down);
        }
        self.bytes += bytes(&scale_down.pods);
        self.whole.insert(self.next, set.clone());
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
            && let Some((number, oldest)) = self.whole.pop_first()
        {
            if let Some(last) = self.by_set.get_mut(&oldest) {
                self.bytes -= bytes(&last.scale_down.pods);
                last.scale_down.pods = Vec::new();
            }
            self.bare.insert(number, oldest);
        }
        while self.by_set.len() * SCALE_DOWN_BYTES > self.bytes_max
            && let Some((_, oldest)) = self
                .bare
                .first_key_value()
                .or_else(|| self.whole.first_key_value())
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, set: &Uid) -> Option<Last> {
        let last = self.by_set.remove(set)?;
        self.whole.remove(&last.number);
        self.bare.remove(&last.number);
        self.bytes -= bytes(&last.scale_down.pods);
        Some(last)
    }

    /// Notes that pods were created, or that all surplus pods were deleted.
    fn note_answered(&mut self, answered: &Answered) {
        let Answered {
            key,
            batch,
            action,
            counts,
            ..
        } = answered;
        match action {
            ActionKind::Create if counts.done > 0 => self.end(&key.uid),
            ActionKind::Delete if counts.failed == 0 && counts.not_started == 0 => {
                let last = self.by_set.get(&key.uid);
                let is_all = last.is_some_and(|last| {
                    let ScaleDown {
                        batch: newest,
                        from,
                        to,
                        chosen,
                        ..
                    } = last.scale_down;
                    newest == *batch
                        && usize::try_from(from.saturating_sub(to)).is_ok_and(|all| all <= chosen)
                });
                if is_all {
                    self.end(&key.uid);
                }
            }
            ActionKind::Create
            | ActionKind::Delete
            | ActionKind::Claim
            | ActionKind::WriteStatus => {}
        }
    }

    fn end(&mut self, set: &Uid) {
        if let Some(last) = self.by_set.get_mut(set) {
            last.is_over = true;
        }
    }
}

// === impl Last ===

impl Last {
    /// Returns whether another batch deletes the rest of this one: more pods than one batch may have, or pods whose deletion was refused.
    const fn continues_in(&self, next: &ScaleDown) -> bool {
        let last = &self.scale_down;
        !self.is_over && next.to == last.to && next.from <= last.from
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
    let bytes = pods.iter().map(|pod| {
        let node = pod.node.as_ref().map_or(0, |node| node.len());
        let reason = pod.reason.as_ref().map_or(0, |it| it.detail.len());
        POD_BYTES + pod.name.len() + node + reason
    });
    bytes.sum()
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
    let pods = pods.iter().map(|pod| {
        let values = pod.values().into_iter();
        v1::RankedPod {
            name: pod.name.as_ref().to_owned(),
            chosen: pod.chosen,
            reason: pod.reason.clone().map(encode::reason),
            values: values
                .map(|(rule, value)| v1::RankValue {
                    rule: wire::rule(rule).into(),
                    value,
                })
                .collect(),
        }
    });
    v1::ScaleDown {
        time: Some(encode::time(*at)),
        batch_id: batch.0,
        from: *from,
        to: *to,
        chosen: i32::try_from(*chosen).unwrap_or(i32::MAX),
        pods: pods.collect(),
    }
}

#[cfg(test)]
mod tests;
