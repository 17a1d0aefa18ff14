//! What is kept for a controller of pods: their counts, and the operations on them.

use std::{collections::HashSet, sync::Arc};

use jiff::Timestamp;

use super::{Cost, Labels, Pod, State};
use crate::nodes::Hint;

/// Sums over pods. What a pod adds depends on nothing but the pod as it is kept, so that it later takes away the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) active: u32,
    pub(crate) ready: u32,
    pub(crate) terminating: u32,
    /// Active pods that the agent deletes.
    pub(crate) leaving: u32,
    /// Active pods that somebody may evict, or will.
    pub(crate) hinted: u32,
    /// Ended pods of a ReplicaSet that nobody deletes.
    pub(crate) ended: u32,
    /// Pods with a deletion cost of ours that nobody deletes.
    pub(crate) advised: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Controller {
    /// The latest labels of a pod: its pods mostly have the same.
    pub(super) labels: Arc<Labels>,
    pub(super) counts: Counts,
    /// The highest counts since the last status write.
    pub(super) peak: Counts,
    /// The names of the pods under creation that were not seen yet.
    pub(super) creates: HashSet<String>,
    /// Creates and deletes of unknown effect, each with its end and the name or UID of the pod.
    pub(super) unknown: Vec<(Timestamp, String)>,
    /// The agent knows it as a ReplicaSet. Only then its peak outlives its pods: anybody who may create pods can invent controllers.
    pub(super) is_known: bool,
}

impl Counts {
    /// Changes the counts of which a pod is a part.
    pub(super) fn change(&mut self, pod: &Pod, change: impl Fn(&mut u32, u32)) {
        let is_advised = pod.cost == Cost::Ours && pod.state.can_leave();
        change(&mut self.advised, is_advised.into());
        let is_ended = pod.is_of_replica_set && pod.is_kept();
        change(&mut self.ended, is_ended.into());
        match pod.state {
            State::Active { ready } => {
                change(&mut self.active, 1);
                change(&mut self.ready, ready.into());
                change(&mut self.leaving, pod.leaving.into());
                change(&mut self.hinted, (pod.hint != Hint::Stays).into());
            }
            State::Terminating => change(&mut self.terminating, 1),
            State::Ended { .. } | State::Gone => {}
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            active: self.active.max(other.active),
            ready: self.ready.max(other.ready),
            terminating: self.terminating.max(other.terminating),
            leaving: self.leaving.max(other.leaving),
            hinted: self.hinted.max(other.hinted),
            ended: self.ended.max(other.ended),
            advised: self.advised.max(other.advised),
        }
    }
}

impl Controller {
    /// Drops the labels if no pod counts. Returns whether nothing is left to keep.
    pub(super) fn shrink(&mut self) -> bool {
        if self.counts != Counts::default() {
            return false;
        }
        self.labels = Arc::default();
        !self.is_known && self.creates.is_empty() && self.unknown.is_empty()
    }
}
