//! The machine: it looks at each event beside the controller, and judges what has come to rest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use server_core::{
    Action, Batch, Controller, Event, Key, KnownSet, OwnerReference, Pieces, Pod, ReplicaSet, Span,
    Timestamp, Uid, Work, pieces,
};

use crate::{
    acts::Acts,
    difference::{Difference, SETTLED},
    episode::Episode,
};

/// When the other controller may have decided what is seen at this moment. Ages are compared by their logarithms at the moment of
/// the decision (spec 7.4), so that a second makes another choice among young pods.
const DECIDED_AGO: [Span; 6] = [
    Span::millis(0),
    Span::millis(-100),
    Span::millis(-250),
    Span::millis(-500),
    Span::millis(-1_000),
    Span::millis(-2_000),
];

/// How many pods may be looked at for each event that comes, so that events cost the same however many pods there are. A choice of victims
/// looks at all pods of a ReplicaSet, so what events do not use is kept for it.
const LOOKS_PER_EVENT: usize = 64;
/// How much work a judgement is counted as.
const JUDGEMENT: usize = 10;
/// How many looks are kept: about half a second's.
const LOOKS_MAX: usize = 500_000;
/// How many active pods a ReplicaSet may have whose choice of victims is compared: it is made up to six times in one go.
const COMPARED_PODS_MAX: usize = 2_000;

/// Watches one cluster in which another controller acts. Owned by the session beside its [`Controller`].
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    episodes: BTreeMap<Key, Episode>,
    due: BTreeSet<(Timestamp, Key)>,
    differences: VecDeque<Difference>,
    compared: u64,
    /// How many pods may be looked at.
    looks: usize,
    /// About how many bytes the episodes take.
    bytes: usize,
}

// === impl Shadow ===

impl Shadow {
    /// Takes a decision as it leaves.
    pub fn handle_batch(&mut self, now: Timestamp, batch: &Batch) {
        self.change(now, &batch.key, |episode| {
            // It is judged in a short while.
            episode.due = episode.due.min(now.plus(SETTLED));
            if let Action::Delete(victims) = &batch.action {
                episode.acts.choose(victims.iter().cloned());
            }
        });
    }

    /// Takes an event before the controller does, so that what it changes can be seen.
    pub fn handle_event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        self.looks = LOOKS_MAX.min(self.looks + LOOKS_PER_EVENT);
        if matches!(event, Event::SnapshotBegin(_)) {
            // A list shows what is, and not what was done.
            self.episodes.clear();
            self.due.clear();
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
            } => self.pod_going(now, controller, (namespace, name, &uid.to_uid())),
            Event::ReplicaSetApplied(set) => self.set_applied(now, controller, set),
            Event::ReplicaSetDeleted { key, version: _ } => drop(self.take_out(key)),
            Event::SnapshotBegin(_) | Event::SnapshotEnd { .. } | Event::Bookmark { .. } => {}
        }
    }

    /// Judges what has come to rest. The controller must have been told all events. Where the work is spent before all is judged, it has
    /// paused, and the next call goes on.
    pub fn handle_timeout(&mut self, now: Timestamp, controller: &Controller, work: &mut Work) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            if work.is_spent() {
                return work.pause();
            }
            work.spend(JUDGEMENT);
            let Some(mut episode) = self.take_out(&key) else {
                self.due.pop_first();
                continue;
            };
            let next = episode.judge(now, controller, &key, &mut self.differences);
            self.compared += std::mem::take(&mut episode.compared);
            // At least a little later, so that this ends. At the end of time nothing is later, and nothing is looked at again.
            let next = next.map(|next| next.max(now.plus(Span::millis(1))));
            if let Some(next) = next.filter(|next| *next > now) {
                episode.due = next;
                self.due.insert((next, key.clone()));
                self.bytes += episode.bytes();
                self.episodes.insert(key, episode);
            }
        }
    }

    /// Returns when [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns the next difference.
    pub fn poll_difference(&mut self) -> Option<Difference> {
        self.differences.pop_front()
    }

    /// Returns what is held, to be freed a piece at a time.
    #[must_use]
    pub fn into_pieces(self) -> Pieces {
        Box::new(pieces(self.episodes).chain(pieces(self.due)))
    }

    /// Returns about how many bytes are held for what is not judged yet.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how often something that the other controller did was compared, alike or not.
    #[must_use]
    pub const fn compared(&self) -> u64 {
        self.compared
    }

    fn pod_applied(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let known = controller.pod(&pod.namespace, &pod.name);
        let Some(known) = known.filter(|known| known.uid == pod.uid) else {
            if !controller.is_gone_pod(&pod.uid) {
                self.pod_came(now, controller, pod);
            }
            return;
        };
        if pod.version <= known.version {
            return;
        }
        if pod.state.deleting && !known.state.deleting {
            self.pod_going(now, controller, (&pod.namespace, &pod.name, &pod.uid));
        }
        let owner = |pod: &Pod| owner(controller, pod);
        if let (None, Some(set)) = (&known.controller, owner(pod)) {
            let due = set.is_to_adopt(&known);
            self.claimed(now, &set, !due, pod);
        }
        if let (Some(set), None) = (owner(&known), &pod.controller) {
            let due = set.is_to_release(&known);
            self.claimed(now, &set, !due, pod);
        }
    }

    /// Notes a pod that is there for the first time: its owner made it.
    fn pod_came(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let Some(set) = owner(controller, pod).filter(|set| set.is_replica(pod)) else {
            return;
        };
        let active = set.active().saturating_add(1);
        let wanted = set.wanted();
        self.acted(now, &set.object().key, |acts| {
            acts.make(active);
            acts.want(wanted);
        });
    }

    /// Notes a pod that goes, and whether it would have been chosen on the view of this moment. Where too many are to be compared, one is
    /// left out.
    fn pod_going(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        (namespace, name, uid): (&str, &str, &Uid),
    ) {
        let Some(pod) = controller
            .pod(namespace, name)
            .filter(|pod| pod.uid == *uid)
        else {
            return;
        };
        let Some(set) = owner(controller, &pod).filter(|set| set.is_replica(&pod)) else {
            return;
        };
        let surplus = usize::try_from(set.surplus()).unwrap_or(0);
        let pods = usize::try_from(set.active()).unwrap_or(0);
        let mut looks = self.looks;
        self.acted(now, &set.object().key, |acts| {
            let is_strange = |acts: &Acts| surplus > 0 && !acts.has_chosen(uid);
            let mut open = false;
            for decided in DECIDED_AGO.map(|ago| now.plus(ago)) {
                if !is_strange(acts) {
                    break;
                }
                let left = looks.checked_sub(2 * pods);
                let Some(left) = left.filter(|_| pods <= COMPARED_PODS_MAX) else {
                    return acts.go(&set, uid);
                };
                looks = left;
                acts.choose(set.victims(decided, surplus));
                open |= set.is_order_open(decided, &pod, surplus);
            }
            if is_strange(acts) {
                acts.go_unchosen(name, open);
            }
            acts.go(&set, uid);
        });
        self.looks = looks;
    }

    /// Notes a change of owner; one that was not due is doubtful, and looked at again when all has settled.
    fn claimed(&mut self, now: Timestamp, set: &KnownSet<'_>, is_doubtful: bool, pod: &Pod) {
        let doubtful = is_doubtful.then_some((&pod.uid, &pod.name));
        self.acted(now, &set.object().key, |acts| acts.claim(set, doubtful));
    }

    fn set_applied(&mut self, now: Timestamp, controller: &Controller, set: &ReplicaSet) {
        let Some(known) = controller.replica_set(&set.key) else {
            return;
        };
        let (before, wanted) = (known.wanted(), set.replicas.max(0));
        if before != wanted {
            self.acted(now, &set.key, |acts| acts.want(before.max(wanted)));
        }
    }

    /// Notes in the episode of a ReplicaSet what happens to it at this moment.
    fn acted(&mut self, now: Timestamp, key: &Key, note: impl FnOnce(&mut Acts)) {
        self.change(now, key, |episode| {
            note(&mut episode.acts);
            episode.changed = now;
            // Whatever was to be looked at before waits until this has settled.
            episode.due = now.plus(SETTLED).min(episode.restless());
        });
    }

    /// Changes the episode of a ReplicaSet, which begins if there is none.
    fn change(&mut self, now: Timestamp, key: &Key, change: impl FnOnce(&mut Episode)) {
        let mut episode = self.take_out(key).unwrap_or_else(|| Episode::new(now));
        change(&mut episode);
        self.due.insert((episode.due, key.clone()));
        self.bytes += episode.bytes();
        self.episodes.insert(key.clone(), episode);
    }

    fn take_out(&mut self, key: &Key) -> Option<Episode> {
        let episode = self.episodes.remove(key)?;
        self.due.remove(&(episode.due, key.clone()));
        self.bytes -= episode.bytes();
        Some(episode)
    }
}

/// Returns the ReplicaSet that a pod names as its controller, if it is known.
fn owner<'a>(controller: &'a Controller, pod: &Pod) -> Option<KnownSet<'a>> {
    let resolve = |owner: &OwnerReference| controller.owner(&pod.namespace, owner.view());
    pod.controller.as_ref().and_then(resolve)
}
