//! What our own writes did to pods, for as long as the stream has not shown it: an outcome that names no object still counts at once.

use std::{collections::HashMap, sync::Arc};

use super::pod::{Entry, PodId};
use crate::object::{OwnerReference, Pod, ResourceVersion};

/// What a write did to a pod beyond what the pod's known state says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Override {
    /// A deletion was accepted: the pod is on its way out.
    pub(crate) deleting: bool,
    /// The owner that an adoption or a release made; the outer `None` where there was neither.
    pub(crate) controller: Option<Option<Arc<OwnerReference>>>,
    /// The owner that the pod had before that.
    pub(crate) before: Option<Arc<OwnerReference>>,
    /// The version of the write, where it was told.
    pub(crate) version: Option<ResourceVersion>,
    /// The list of pods that had begun last when the write was reported.
    pub(crate) list: u32,
}

/// Overrides by pod. Few pods have one, and none for long.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    by_pod: HashMap<PodId, Override>,
}

// === impl Override ===

impl Override {
    /// Returns whether a state of the pod that is told during or after list number `list` includes the write.
    fn is_shown_by(&self, told: &Pod, list: u32) -> bool {
        match (told.version, self.version) {
            (Some(told), Some(written)) => told >= written,
            // Without a version to compare, a list that began after the write shows it, or another owner than the pod had before.
            (None, _) | (_, None) => list > self.list || self.is_passed_by(told),
        }
    }

    fn is_passed_by(&self, told: &Pod) -> bool {
        self.controller.is_some() && told.controller.as_ref() != self.before.as_deref()
    }

    fn impose(&self, entry: &mut Entry) {
        entry.deleting |= self.deleting;
    }
}

// === impl Overrides ===

impl Overrides {
    /// Returns whether something of the pod is overridden.
    pub(crate) fn has(&self, id: PodId) -> bool {
        self.by_pod.contains_key(&id)
    }

    /// Adds to what is overridden of a pod.
    pub(crate) fn add(&mut self, id: PodId, fresh: Override) {
        let known = self.by_pod.entry(id).or_default();
        known.deleting |= fresh.deleting;
        if fresh.controller.is_some() {
            known.controller = fresh.controller;
            known.before = fresh.before;
        }
        known.version = known.version.max(fresh.version);
        known.list = known.list.max(fresh.list);
    }

    /// Returns whether a told state ends an override.
    pub(crate) fn ends(&self, id: PodId, told: &Pod, list: u32) -> bool {
        self.by_pod
            .get(&id)
            .is_some_and(|known| known.is_shown_by(told, list))
    }

    /// Forgets what is overridden of a pod.
    pub(crate) fn remove(&mut self, id: PodId) -> Option<Override> {
        if self.by_pod.is_empty() {
            None
        } else {
            self.by_pod.remove(&id)
        }
    }

    /// Returns the owner that holds instead of a told one.
    pub(crate) fn controller(&self, id: PodId) -> Option<Option<Arc<OwnerReference>>> {
        self.by_pod.get(&id)?.controller.clone()
    }

    /// Makes an entry show what is overridden, but for the owner.
    pub(crate) fn impose(&self, id: PodId, entry: &mut Entry) {
        if let Some(known) = self.by_pod.get(&id) {
            known.impose(entry);
        }
    }
}
