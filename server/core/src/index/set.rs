//! A ReplicaSet in the index, with counts that each change of its pods updates.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    evictions::Evictions,
    group::PodGroup,
    large,
    pod::{Contribution, Entry, PodId},
    rewrites::Rewrites,
};
use crate::{
    labels::Labels,
    names::{self, NameCursor, NameSeed},
    object::{ReplicaSet, Span, Timestamp},
    selector::{Quarantine, Selector},
};

/// The number of a ReplicaSet in the index; never reused.
pub(crate) type SetId = u64;

#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) object: ReplicaSet,
    pub(crate) generate_name: Arc<str>,
    pub(crate) cursor: NameCursor,
    /// The memory of the names of `cursor` in bytes, as counted last.
    pub(super) name_bytes: usize,
    /// The number of the last snapshot that named it.
    pub(super) snapshot: u32,
    pub(crate) counts: Counts,
    pub(crate) evictions: Option<Box<Evictions>>,
    /// The pods, in any state, that name it as their controller.
    pub(crate) owned: Vec<PodId>,
    /// Owned active pods that do not match the selector, by name.
    pub(crate) releases: BTreeSet<(Arc<str>, PodId)>,
    /// Ready pods that are not available yet, by the time at which they become available.
    pending: BTreeSet<(Timestamp, PodId)>,
    /// Since when [`Self::note_convergence`] has found fewer available pods than desired, or more active pods.
    pub(crate) unconverged_since: Option<Timestamp>,
    /// The number of desired pods at the last [`Self::note_wanted`].
    noted_wanted: Option<i32>,
    /// What holds its creates up, and its status.
    pub(crate) pace: Pace,
}

/// Until when creates and status writes of a ReplicaSet wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Whether a create of its last batch had no answer, so that its effect is unknown.
    pub(crate) is_unanswered: bool,
    /// The end of the wait after such a batch.
    pub(crate) unanswered_until: Timestamp,
    /// When the next pods may be created while many have no node.
    pub(crate) unassigned_until: Timestamp,
    /// When pods whose owner is presumed are adopted again.
    pub(crate) presumed_until: Option<Timestamp>,
    /// Until when nobody need be told again that creates wait.
    pub(crate) told_until: Timestamp,
    pub(crate) rewrites: Rewrites,
}

/// The counts of the pods that a ReplicaSet owns and selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) active: i32,
    pub(crate) unassigned: i32,
    pub(crate) fully_labeled: i32,
    pub(crate) ready: i32,
    pub(crate) available: i32,
    pub(crate) terminating: i32,
    /// Pods whose labels are forgotten. Beside one of these, no other pod is counted.
    pub(crate) unknown: i32,
}

impl Set {
    pub(super) fn new(id: SetId, names: NameSeed, object: ReplicaSet) -> Self {
        Self {
            generate_name: names::generate_name(&object.key.name),
            cursor: NameCursor::new(names, &object.key.uid, id),
            object,
            name_bytes: 0,
            snapshot: 0,
            counts: Counts::default(),
            evictions: None,
            owned: Vec::new(),
            releases: BTreeSet::new(),
            pending: BTreeSet::new(),
            unconverged_since: None,
            noted_wanted: None,
            pace: Pace::default(),
        }
    }

    pub(crate) fn selector(&self) -> Option<&Selector> {
        let selector = self.object.selector.as_ref().ok();
        selector.filter(|_| self.counts.unknown == 0)
    }

    /// Whether it selects the pods of a group.
    pub(crate) fn selects(&self, group: &PodGroup) -> bool {
        let selector = self.selector();
        self.object.key.namespace == group.namespace
            && selector.is_some_and(|selector| group.is_selected_by(selector))
    }

    pub(crate) fn quarantine(&self) -> Option<Quarantine> {
        match (&self.object.selector, self.counts.unknown) {
            (Err(quarantine), _) => Some(quarantine.clone()),
            (Ok(_), 0) => None,
            (Ok(_), pods) => Some(large::pods(pods)),
        }
    }

    pub(crate) fn name_base(&self) -> &str {
        names::base(&self.generate_name)
    }

    pub(crate) fn wanted(&self) -> i32 {
        self.object.replicas.max(0)
    }

    /// Returns the active pods minus the target; negative if pods are missing.
    pub(crate) fn surplus(&self) -> i64 {
        i64::from(self.counts.active) - i64::from(self.target())
    }

    /// Checks whether the ReplicaSet has converged, and remembers since when it has not.
    pub(crate) fn note_convergence(&mut self, now: Timestamp) {
        let Counts {
            active, available, ..
        } = self.counts_at(now);
        let target = self.target();
        let converged = active == target && available == target;
        let since = self.unconverged_since.unwrap_or(now);
        self.unconverged_since = (!converged).then_some(since);
    }

    /// Records the number of desired pods. Returns the number recorded before, which a new ReplicaSet does not have; `None` if the number
    /// is unchanged.
    pub(crate) fn note_wanted(&mut self) -> Option<Option<i32>> {
        let wanted = Some(self.wanted());
        let before = std::mem::replace(&mut self.noted_wanted, wanted);
        (before != wanted).then_some(before)
    }

    /// Whether it lacks pods, and waits before it repeats creates of unknown effect.
    pub(crate) fn waits_for_answer(&self, now: Timestamp) -> bool {
        now < self.pace.unanswered_until && self.surplus() < 0
    }

    /// Whether ready pods are to become available.
    pub(crate) fn awaits_availability(&self) -> bool {
        self.min_ready().0 > 0 && self.counts.ready != self.counts.available
    }

    fn min_ready(&self) -> Span {
        Span::seconds(i64::from(self.object.min_ready_seconds.max(0)))
    }

    /// Whether a ready pod is available at a time.
    pub(crate) fn is_available(&self, pod: &Entry, at: Timestamp) -> bool {
        self.min_ready().0 == 0 || self.due(pod).is_some_and(|due| due <= at)
    }

    /// Returns when a ready pod becomes available; `None` if it is unknown since when it is ready.
    fn due(&self, pod: &Entry) -> Option<Timestamp> {
        let since = pod.state.ready.since?;
        Some(since.plus(self.min_ready()))
    }

    /// Counts an owned pod in, and returns its contribution.
    pub(super) fn count_in(
        &mut self,
        now: Timestamp,
        id: PodId,
        pod: &Entry,
        labels: Option<&Labels>,
    ) -> Contribution {
        let Some(labels) = labels else {
            let unknown = Contribution {
                unknown: true,
                ..Contribution::default()
            };
            self.add(&unknown, 1);
            return unknown;
        };
        let Some(selector) = self.selector() else {
            return Contribution::default();
        };
        let matches = selector.matches(labels);
        let active = matches && pod.state.is_active();
        let ready = active && pod.state.ready.ready;
        let mut template = self.object.template_labels.iter();
        let fully_labeled = active && template.all(|(key, value)| labels.get(key) == Some(value));
        let due = self.due(pod);
        let available = ready && self.is_available(pod, now);
        let counted = Contribution {
            active,
            unassigned: active && pod.node.is_none(),
            fully_labeled,
            ready,
            available,
            pending: ready && !available && due.is_some(),
            terminating: matches && pod.state.is_terminating(),
            release: !matches && pod.state.is_active(),
            unknown: false,
        };
        self.add(&counted, 1);
        if let Some(due) = due.filter(|_| counted.pending) {
            self.pending.insert((due, id));
        }
        if counted.release {
            self.releases.insert((Arc::clone(&pod.name), id));
        }
        counted
    }

    /// Undoes [`Self::count_in`].
    pub(super) fn count_out(&mut self, id: PodId, pod: &Entry) {
        let counted = pod.counted;
        self.add(&counted, -1);
        if let Some(due) = self.due(pod).filter(|_| counted.pending) {
            self.pending.remove(&(due, id));
        }
        if counted.release {
            self.releases.remove(&(Arc::clone(&pod.name), id));
        }
    }

    fn add(&mut self, counted: &Contribution, by: i32) {
        let add = |count: &mut i32, counted: bool| *count += if counted { by } else { 0 };
        add(&mut self.counts.active, counted.active);
        add(&mut self.counts.unassigned, counted.unassigned);
        add(&mut self.counts.fully_labeled, counted.fully_labeled);
        add(&mut self.counts.ready, counted.ready);
        add(&mut self.counts.available, counted.available);
        add(&mut self.counts.terminating, counted.terminating);
        add(&mut self.counts.unknown, counted.unknown);
    }

    pub(super) fn pop_available(&mut self, now: Timestamp) -> Option<PodId> {
        let (due, id) = *self.pending.first()?;
        if due > now {
            return None;
        }
        self.pending.pop_first();
        self.counts.available += 1;
        Some(id)
    }

    /// Returns the counts at `now`, which may be later than their last update.
    pub(crate) fn counts_at(&self, now: Timestamp) -> Counts {
        let due = self.pending.range(..=(now, PodId::MAX)).count();
        let due = i32::try_from(due).unwrap_or(i32::MAX);
        Counts {
            available: self.counts.available.saturating_add(due),
            ..self.counts
        }
    }

    pub(crate) fn next_available(&self) -> Option<Timestamp> {
        self.pending.first().map(|(due, _)| *due)
    }

    pub(super) fn reset(&mut self) {
        self.counts = Counts::default();
        self.releases.clear();
        self.pending.clear();
    }
}
