//! The state machine: it looks at each event before the controller does, and judges the acts of the other controller.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use server_core::{
    Batch, CompactUid, Controller, Event, Key, KnownSet, OwnerReference, Pod, PodState, Replica,
    ReplicaSet, Span, Timestamp, Uid,
};

use crate::{
    acts::{Acts, Doubtful, Judge},
    allowance::Allowance,
    difference::{Agreements, Difference, LATE, REACH, SETTLED},
    episode::Episode,
    past::{Change, Past, PodChange, What},
    search::Gone,
};

/// The number of pods that may be examined for each event, so that an event costs the same for any number of pods. A search examines all
/// pods of a ReplicaSet once for each view, so it also gets the looks that events do not use.
const LOOKS_PER_EVENT: usize = 128;
/// The number of looks before the first event.
const LOOKS_FREE: usize = 50_000;
/// The maximum number of saved looks: about half a second's.
const LOOKS_MAX: usize = 500_000;
/// The maximum number of looks of a judgement in one go.
const LOOKS_AT_ONCE: usize = 50_000;

/// Watches one cluster in which another controller acts. The session owns it, beside its [`Controller`].
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    episodes: BTreeMap<Key, Episode>,
    due: BTreeSet<(Timestamp, Key)>,
    /// The recent changes, by the owner of the ReplicaSets: pods of the same Deployment crowd the same nodes.
    pasts: BTreeMap<Uid, Past>,
    /// When each past can forget something.
    fading: BTreeSet<(Timestamp, Uid)>,
    differences: VecDeque<Difference>,
    agreements: Agreements,
    allowance: Allowance,
    deleted_by_others: u64,
    looks: Looks,
    /// The approximate memory of the episodes and the pasts, in bytes.
    bytes: usize,
}

/// The number of looks that are left.
#[derive(Clone, Copy, Debug)]
struct Looks(usize);

impl Default for Looks {
    fn default() -> Self {
        Self(LOOKS_FREE)
    }
}

// === impl Shadow ===

impl Shadow {
    /// Records a decision as it leaves: its acts are due from then on.
    pub fn handle_batch(&mut self, now: Timestamp, batch: &Batch) {
        self.change(&batch.key, now, |episode| {
            episode.due = episode.due.min(now.plus(SETTLED));
        });
    }

    /// Records an event before the controller does, so that its change is visible.
    pub fn handle_event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        self.looks.0 = LOOKS_MAX.min(self.looks.0 + LOOKS_PER_EVENT);
        if matches!(event, Event::SnapshotBegin(_)) {
            // A list shows the state, and not the acts.
            self.episodes.clear();
            self.due.clear();
            self.pasts.clear();
            self.fading.clear();
            self.bytes = 0;
        }
        if !controller.is_view_whole() {
            return;
        }
        match event {
            Event::PodApplied(pod) => self.pod_applied(now, controller, pod),
            Event::PodDeleted {
                namespace,
                name,
                uid,
                version: _,
            } => self.pod_deleted(now, controller, (namespace, name, uid)),
            Event::ReplicaSetApplied(set) => self.set_applied(now, controller, set),
            Event::ReplicaSetDeleted { key, version: _ } => drop(self.take_out(key)),
            Event::SnapshotBegin(_) | Event::SnapshotEnd { .. } | Event::Bookmark { .. } => {}
        }
    }

    /// Judges the acts that are due. The controller must have received all events.
    pub fn handle_timeout(&mut self, now: Timestamp, controller: &Controller) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some(mut episode) = self.take_out(&key) else {
                self.due.pop_first();
                continue;
            };
            let next = self.judge(now, controller, (&key, &mut episode));
            // At least a little later, so that this ends. At the end of time nothing is later, and nothing is judged again.
            let next = next.map(|next| next.max(now.plus(Span::millis(1))));
            if let Some(next) = next.filter(|next| *next > now) {
                episode.due = next;
                self.put_back(key, episode);
            }
        }
        self.fade(now);
    }

    /// Returns when [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.due.first().map(|(due, _)| *due);
        let fading = self.fading.first().map(|(due, _)| *due);
        due.into_iter().chain(fading).min()
    }

    /// Returns the next difference.
    pub fn poll_difference(&mut self) -> Option<Difference> {
        self.differences.pop_front()
    }

    /// The approximate memory of acts that are not judged yet, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The comparisons of the other controller's acts, by result.
    #[must_use]
    pub const fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    /// The number of deleted pods that no controller had to choose, as there was no surplus.
    #[must_use]
    pub const fn deleted_by_others(&self) -> u64 {
        self.deleted_by_others
    }

    fn judge(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        (key, episode): (&Key, &mut Episode),
    ) -> Option<Timestamp> {
        let nothing = Past::default();
        let set = controller.inspect().replica_set(key)?;
        let past = self.pasts.get(family(set.object())).unwrap_or(&nothing);
        let allowed = self.looks.0.min(LOOKS_AT_ONCE);
        let mut looks = allowed;
        let mut judge = Judge {
            now,
            controller,
            past,
            looks: &mut looks,
            allowance: &mut self.allowance,
            agreements: &mut self.agreements,
            findings: Vec::new(),
            deleted_by_others: 0,
        };
        let next = episode.judge(&mut judge, key);
        self.deleted_by_others += judge.deleted_by_others;
        let findings = judge.findings.into_iter();
        self.differences.extend(findings.map(|finding| Difference {
            key: key.clone(),
            finding,
        }));
        self.looks.0 -= allowed - looks;
        next
    }

    /// Forgets changes that are too old to matter.
    fn fade(&mut self, now: Timestamp) {
        while let Some((_, family)) = self.fading.first().filter(|(due, _)| *due <= now).cloned() {
            self.fading.pop_first();
            let Some(past) = self.pasts.get_mut(&family) else {
                continue;
            };
            self.bytes -= past.bytes();
            past.forget(now);
            // At the end of time, all changes are forgotten.
            let next = past.begins().map(fades);
            if let Some(next) = next.filter(|next| *next > now) {
                self.bytes += past.bytes();
                self.fading.insert((next, family));
            } else {
                self.pasts.remove(&family);
            }
        }
    }

    fn pod_applied(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let known = controller.inspect().pod(&pod.namespace, &pod.name);
        let Some(known) = known.filter(|known| known.uid == pod.uid) else {
            if !controller.inspect().is_gone_pod(&pod.uid) {
                self.pod_came(now, controller, pod);
            }
            return;
        };
        if pod.version <= known.version {
            return;
        }
        let (before, after) = (owner(controller, &known), owner(controller, pod));
        self.pod_changed(now, (before.as_ref(), &known), (after.as_ref(), pod));
        if let (None, Some(set)) = (&known.controller, &after) {
            self.claimed(now, set, !set.is_to_adopt(&known), pod);
        }
        if let (Some(set), None) = (&before, &pod.controller) {
            self.claimed(now, set, !set.is_to_release(&known), pod);
        }
    }

    /// Records a pod that is seen for the first time: its owner created it.
    fn pod_came(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        if let Some(set) = owner(controller, pod)
            && let Some(after) = replica(Some(&set), pod)
        {
            let active = set.active().saturating_add(1);
            self.remember(now, set.object(), pod_change(None, Some(after), true));
            self.acted(now, &set.object().key, |acts| acts.make(now, active));
        }
    }

    /// Records a change of a known pod, and its deletion if a client requests that without a reason.
    fn pod_changed(
        &mut self,
        now: Timestamp,
        (set_before, known): (Option<&KnownSet<'_>>, &Pod),
        (set_after, pod): (Option<&KnownSet<'_>>, &Pod),
    ) {
        let before = replica(set_before, known);
        let after = replica(set_after, pod);
        let key = |set: Option<&KnownSet<'_>>| set.map(|set| set.object().key.uid.clone());
        if key(set_before) != key(set_after) {
            if let Some((set, before)) = set_before.zip(before) {
                self.remember(now, set.object(), pod_change(Some(before), None, false));
            }
            if let Some((set, after)) = set_after.zip(after) {
                self.remember(now, set.object(), pod_change(None, Some(after), false));
            }
        } else if let Some(set) = set_before.filter(|_| before != after) {
            match before {
                Some(before) if pod.state.is_terminating() => {
                    self.goes(now, set, (before, after), &pod.state);
                }
                before => {
                    self.remember(now, set.object(), pod_change(before, after, false));
                }
            }
        }
    }

    /// Records a pod that is gone, and whether a client deleted it at once.
    fn pod_deleted(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        (namespace, name, uid): (&str, &str, &CompactUid),
    ) {
        let pod = controller.inspect().pod(namespace, name);
        if let Some(pod) = pod.filter(|pod| uid.is(&pod.uid.0))
            && let Some(set) = owner(controller, &pod)
            && let Some(before) = replica(Some(&set), &pod)
        {
            self.goes(now, &set, (before, None), &pod.state);
        }
    }

    /// Records a replica that goes, and its deletion unless its node or its eviction is the cause.
    fn goes(
        &mut self,
        now: Timestamp,
        set: &KnownSet<'_>,
        (before, after): (Replica, Option<Replica>),
        state: &PodState,
    ) {
        let (uid, name) = (before.uid.clone(), Arc::clone(&before.name));
        let change = pod_change(Some(before), after, false);
        let number = self.remember(now, set.object(), change);
        if !state.disruption_target {
            let gone = Gone {
                number,
                at: now,
                uid,
                name,
                tried: false,
            };
            self.acted(now, &set.object().key, |acts| acts.go(gone));
        }
    }

    /// Records a change of owner. A change that was not due is doubtful, and judged again when all has settled.
    fn claimed(&mut self, now: Timestamp, set: &KnownSet<'_>, is_doubtful: bool, pod: &Pod) {
        let doubtful = is_doubtful.then(|| {
            let selector = set.object().selector.as_ref();
            let selects = selector.is_ok_and(|selector| selector.matches(&pod.labels));
            let doubtful = Doubtful {
                name: Arc::clone(&pod.name),
                is_stranger: pod.controller.is_some() && !selects,
            };
            (pod.uid.clone(), doubtful)
        });
        self.acted(now, &set.object().key, |acts| acts.claim(now, doubtful));
    }

    fn set_applied(&mut self, now: Timestamp, controller: &Controller, set: &ReplicaSet) {
        if let Some(known) = controller.inspect().replica_set(&set.key)
            && known.wanted() != set.replicas.max(0)
            && set.version > known.object().version
        {
            self.remember(now, known.object(), What::Wanted(known.wanted()));
            self.acted(now, &set.key, |_| ());
        }
    }

    /// Adds a change to the past, and returns its number.
    fn remember(&mut self, now: Timestamp, set: &ReplicaSet, what: What) -> u64 {
        let family = family(set);
        let past = self.pasts.entry(family.clone()).or_insert_with(|| {
            self.fading.insert((fades(now), family.clone()));
            let past = Past::default();
            self.bytes += past.bytes();
            past
        });
        self.bytes -= past.bytes();
        let number = past.push(Change {
            at: now,
            set: set.key.uid.clone(),
            what,
        });
        self.bytes += past.bytes();
        number
    }

    /// Records an act in the episode of a ReplicaSet.
    fn acted(&mut self, now: Timestamp, key: &Key, note: impl FnOnce(&mut Acts)) {
        self.change(key, now, |episode| {
            note(&mut episode.acts);
            episode.changed = now;
            episode.due = episode.next_due();
        });
    }

    /// Changes the episode of a ReplicaSet, and begins an episode if there is none.
    fn change(&mut self, key: &Key, now: Timestamp, change: impl FnOnce(&mut Episode)) {
        let mut episode = self.take_out(key).unwrap_or_else(|| Episode::new(now));
        change(&mut episode);
        self.put_back(key.clone(), episode);
    }

    fn put_back(&mut self, key: Key, episode: Episode) {
        self.due.insert((episode.due, key.clone()));
        self.bytes += episode.bytes();
        self.episodes.insert(key, episode);
    }

    fn take_out(&mut self, key: &Key) -> Option<Episode> {
        let episode = self.episodes.remove(key)?;
        self.due.remove(&(episode.due, key.clone()));
        self.bytes -= episode.bytes();
        Some(episode)
    }
}

/// Returns when a change is forgotten: not one by one, but all changes within a second together.
fn fades(at: Timestamp) -> Timestamp {
    at.plus(REACH).plus(LATE).plus(LATE).plus(SETTLED)
}

/// Returns the key of a ReplicaSet's past: the UID of its owner, or its own UID.
fn family(set: &ReplicaSet) -> &Uid {
    let owner = set.controller.as_ref();
    owner.map_or(&set.key.uid, |owner| &owner.uid)
}

fn pod_change(before: Option<Replica>, after: Option<Replica>, is_made: bool) -> What {
    What::Pod(Box::new(PodChange {
        before,
        after,
        is_made,
    }))
}

/// Returns a pod as a replica of its ReplicaSet; `None` if it does not count as one.
fn replica(set: Option<&KnownSet<'_>>, pod: &Pod) -> Option<Replica> {
    set?.is_replica(pod).then(|| Replica {
        name: Arc::clone(&pod.name),
        uid: (&pod.uid).into(),
        node: pod.node.clone(),
        state: pod.state,
    })
}

/// Returns the ReplicaSet that a pod names as its controller, if the ReplicaSet is known.
fn owner<'a>(controller: &'a Controller, pod: &Pod) -> Option<KnownSet<'a>> {
    let resolve = |owner: &OwnerReference| controller.inspect().owner(&pod.namespace, owner.view());
    pod.controller.as_ref().and_then(resolve)
}
