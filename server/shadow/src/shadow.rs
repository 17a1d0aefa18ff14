//! The machine: it looks at each event beside the controller, and judges what has been done.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use server_core::{
    Batch, CompactUid, Controller, Event, Key, KnownSet, OwnerReference, Pod, Replica, ReplicaSet,
    Span, Timestamp, Uid,
};

use crate::{
    acts::{Acts, Doubtful, Judge},
    allowance::Allowance,
    difference::{Agreements, Difference, LATE, REACH, SETTLED},
    episode::Episode,
    past::{Change, Past, PodChange, What},
    search::Gone,
};

/// How many pods may be looked at for each event that comes, so that events cost the same however many pods there are. A search looks at
/// all pods of a ReplicaSet once for each view, so what events do not use is kept for it.
const LOOKS_PER_EVENT: usize = 128;
/// How many pods may be looked at before any event has come.
const LOOKS_FREE: usize = 50_000;
/// How many looks are kept: about half a second's.
const LOOKS_MAX: usize = 500_000;
/// How many looks a judgement may take in one go.
const LOOKS_AT_ONCE: usize = 50_000;

/// Watches one cluster in which another controller acts. Owned by the session beside its [`Controller`].
#[derive(Clone, Debug)]
pub struct Shadow {
    episodes: BTreeMap<Key, Episode>,
    due: BTreeSet<(Timestamp, Key)>,
    /// What happened of late, by who owns the ReplicaSets: pods of the same Deployment crowd the same nodes.
    pasts: BTreeMap<Uid, Past>,
    /// When each of them can forget something.
    fading: BTreeSet<(Timestamp, Uid)>,
    differences: VecDeque<Difference>,
    agreements: Agreements,
    allowance: Allowance,
    deleted_by_others: u64,
    /// How many pods may be looked at.
    looks: usize,
    /// About how many bytes the episodes and the past take.
    bytes: usize,
}

// === impl Shadow ===

impl Default for Shadow {
    fn default() -> Self {
        Self {
            episodes: BTreeMap::new(),
            due: BTreeSet::new(),
            pasts: BTreeMap::new(),
            fading: BTreeSet::new(),
            differences: VecDeque::new(),
            agreements: Agreements::default(),
            allowance: Allowance::default(),
            deleted_by_others: 0,
            looks: LOOKS_FREE,
            bytes: 0,
        }
    }
}

impl Shadow {
    /// Takes a decision as it leaves: what it decides is due from then on.
    pub fn handle_batch(&mut self, now: Timestamp, batch: &Batch) {
        self.change(&batch.key, now, |episode| {
            episode.due = episode.due.min(now.plus(SETTLED));
        });
    }

    /// Takes an event before the controller does, so that what it changes can be seen.
    pub fn handle_event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        self.looks = LOOKS_MAX.min(self.looks + LOOKS_PER_EVENT);
        if matches!(event, Event::SnapshotBegin(_)) {
            // A list shows what is, and not what was done.
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

    /// Judges what is due. The controller must have been told all events.
    pub fn handle_timeout(&mut self, now: Timestamp, controller: &Controller) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some(mut episode) = self.take_out(&key) else {
                self.due.pop_first();
                continue;
            };
            let next = self.judge(now, controller, (&key, &mut episode));
            // At least a little later, so that this ends. At the end of time nothing is later, and nothing is looked at again.
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

    /// Returns about how many bytes are held for what is not judged yet.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how often something that the other controller did was compared, and what came of it.
    #[must_use]
    pub const fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    /// Returns how many pods were deleted that nobody had to choose: there were not too many.
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
        let allowed = self.looks.min(LOOKS_AT_ONCE);
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
        self.looks -= allowed - looks;
        next
    }

    /// Forgets what happened too long ago to matter.
    fn fade(&mut self, now: Timestamp) {
        while let Some((_, family)) = self.fading.first().filter(|(due, _)| *due <= now).cloned() {
            self.fading.pop_first();
            let Some(past) = self.pasts.get_mut(&family) else {
                continue;
            };
            let bytes = past.bytes();
            past.forget(now);
            // Not each on its own: what is a second older goes with it. At the end of time all of it goes.
            let next = past.begins().map(|begins| fades(begins).plus(SETTLED));
            if let Some(next) = next.filter(|next| *next > now) {
                self.bytes -= bytes - past.bytes();
                self.fading.insert((next, family));
            } else {
                self.bytes -= bytes;
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

    /// Notes a pod that is there for the first time: its owner made it.
    fn pod_came(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let Some(set) = owner(controller, pod) else {
            return;
        };
        let after = replica(Some(&set), pod);
        if after.is_none() {
            return;
        }
        let active = set.active().saturating_add(1);
        self.remember(now, set.object(), pod_change(None, after, true));
        self.acted(now, &set.object().key, |acts| acts.make(now, active));
    }

    /// Notes a change of a pod that is known, and that it goes if it is asked to by somebody who does not say why.
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
            return;
        }
        let Some(set) = set_before.filter(|_| before != after) else {
            return;
        };
        let goes = before.is_some() && pod.state.deleting && !pod.state.phase.has_ended();
        let number = self.remember(now, set.object(), pod_change(before, after, false));
        if goes && !pod.state.disruption_target {
            self.goes(now, set, (number, &known.name, (&known.uid).into()));
        }
    }

    /// Notes a pod that is gone, and whether somebody deleted it at once.
    fn pod_deleted(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        (namespace, name, uid): (&str, &str, &CompactUid),
    ) {
        let Some(pod) = controller
            .inspect()
            .pod(namespace, name)
            .filter(|pod| *uid == pod.uid)
        else {
            return;
        };
        let Some(set) = owner(controller, &pod) else {
            return;
        };
        let before = replica(Some(&set), &pod);
        if before.is_some() {
            let number = self.remember(now, set.object(), pod_change(before, None, false));
            if !pod.state.disruption_target {
                self.goes(now, &set, (number, &pod.name, uid.clone()));
            }
        }
    }

    fn goes(
        &mut self,
        now: Timestamp,
        set: &KnownSet<'_>,
        (number, name, uid): (u64, &Arc<str>, CompactUid),
    ) {
        let gone = Gone {
            number,
            at: now,
            uid,
            name: Arc::clone(name),
            tried: false,
        };
        self.acted(now, &set.object().key, |acts| acts.go(gone));
    }

    /// Notes a change of owner; one that was not due is doubtful, and looked at again when all has settled.
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
        let Some(known) = controller.inspect().replica_set(&set.key) else {
            return;
        };
        let before = known.wanted();
        if before != set.replicas.max(0) && set.version > known.object().version {
            self.remember(now, known.object(), What::Wanted(before));
            self.acted(now, &set.key, |_| ());
        }
    }

    /// Remembers a change, and returns its number.
    fn remember(&mut self, now: Timestamp, set: &ReplicaSet, what: What) -> u64 {
        let family = family(set);
        let past = match self.pasts.get_mut(family) {
            Some(past) => past,
            None => {
                let due = fades(now).plus(SETTLED);
                self.fading.insert((due, family.clone()));
                let past = self.pasts.entry(family.clone()).or_default();
                self.bytes += past.bytes();
                past
            }
        };
        let bytes = past.bytes();
        let number = past.push(Change {
            at: now,
            set: set.key.uid.clone(),
            what,
        });
        self.bytes += past.bytes();
        self.bytes -= bytes;
        number
    }

    /// Notes in the episode of a ReplicaSet what happens to it at this moment.
    fn acted(&mut self, now: Timestamp, key: &Key, note: impl FnOnce(&mut Acts)) {
        self.change(key, now, |episode| {
            note(&mut episode.acts);
            episode.changed = now;
            episode.due = episode.next_due();
        });
    }

    /// Changes the episode of a ReplicaSet, which begins if there is none.
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

/// Returns when a change can be forgotten.
fn fades(at: Timestamp) -> Timestamp {
    at.plus(REACH).plus(LATE).plus(LATE)
}

/// Returns whose past a ReplicaSet shares: that of its owner, or its own.
fn family(set: &ReplicaSet) -> &Uid {
    set.controller
        .as_ref()
        .map_or(&set.key.uid, |owner| &owner.uid)
}

fn pod_change(before: Option<Replica>, after: Option<Replica>, is_made: bool) -> What {
    What::Pod(Box::new(PodChange {
        before,
        after,
        is_made,
    }))
}

/// Returns a pod as a replica of its ReplicaSet, if it counts as one.
fn replica(set: Option<&KnownSet<'_>>, pod: &Pod) -> Option<Replica> {
    set?.is_replica(pod).then(|| Replica {
        name: Arc::clone(&pod.name),
        uid: (&pod.uid).into(),
        node: pod.node.clone(),
        state: pod.state,
    })
}

/// Returns the ReplicaSet that a pod names as its controller, if it is known.
fn owner<'a>(controller: &'a Controller, pod: &Pod) -> Option<KnownSet<'a>> {
    let resolve = |owner: &OwnerReference| controller.inspect().owner(&pod.namespace, owner.view());
    pod.controller.as_ref().and_then(resolve)
}
