//! Compares what is decided with what another controller does (mode shadow): the same stream shows both.
//!
//! # Theory of operation
//! Both controllers look at one cluster, neither at the same moment: the other acts on a view of its own, in steps, and its acts come
//! back on two streams that have no common order. So single steps are not compared. What happens to a ReplicaSet between two rests is
//! an episode; it collects what was decided on any view of that time, and what the other did; and it is judged when the other has
//! come to rest: when nothing was made or removed for [`SETTLED`] and nothing is left to do.
//!
//! ```text
//! decision, pod made or going, owner changed, other replicas ─▶ Episode ── calm, nothing due ─▶ judged: count, victims, adoption
//!                                                                  │                       └─▶ status, when it has stood for STATUS_MAX
//!                                                                  └── due for PENDING_MAX ──▶ "not done"
//! ```
//! | subject | differs if |
//! | --- | --- |
//! | count | pods were made beyond the most that were wanted in the episode; or what is due is not done |
//! | victims | a pod went that no view of the episode would have chosen, while one stays that was chosen |
//! | status | the status that the pods call for is not the one that is written |
//! | adoption | a pod changed owner that matched no reason for it; or one that is due is not done |
//!
//! **Invariant:** what is only late is no difference: each is told when its time is over, and once.
//!
//! Deliberately outside: who did it. A pod that a person deletes amid a scale-down looks like a victim that the other chose.

mod episode;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use self::episode::Episode;
use crate::{
    batch::{Action, Batch},
    controller::Controller,
    event::Event,
    index::SetId,
    object::{Key, OwnerReference, Pod, ReplicaSet, Span, Timestamp, Uid},
};

/// How long nothing must happen to the pods of a ReplicaSet before they are judged: longer than one stream lags behind the other.
pub const SETTLED: Span = Span::seconds(1);
/// How long a status may be another than the pods call for.
pub const STATUS_MAX: Span = Span::seconds(5);
/// How long what is decided may stay undone.
pub const PENDING_MAX: Span = Span::seconds(30);

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

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// How many pods are made or go.
    Count,
    /// Which pods go.
    Victims,
    /// The status.
    Status,
    /// Which pods are adopted and released.
    Adoption,
}

/// The documented departures from upstream that show from outside (docs/architecture.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Departure {
    /// The order of deletion is total, where upstream's has ties and cycles.
    OrderOfDeletion,
    /// The condition ReplicaFailure mirrors the latest attempt.
    ReplicaFailure,
}

/// One thing that the other controller did in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The ReplicaSet.
    pub key: Key,
    /// What differs.
    pub subject: Subject,
    /// What was decided here, for people.
    pub decided: String,
    /// What was done there, for people.
    pub done: String,
    /// Why it may differ, where that is documented.
    pub departure: Option<Departure>,
}

/// Watches one cluster in which another controller acts. Owned by the session beside its [`Controller`].
#[derive(Debug, Default)]
pub struct Shadow {
    episodes: BTreeMap<Key, Episode>,
    due: BTreeSet<(Timestamp, Key)>,
    differences: VecDeque<Difference>,
    compared: u64,
}

// === impl Shadow ===

impl Shadow {
    /// Takes a decision as it leaves.
    pub fn handle_batch(&mut self, now: Timestamp, batch: &Batch) {
        let episode = self.look_soon(now, &batch.key);
        if let Action::Delete(victims) = &batch.action {
            let victims = victims.iter().map(|victim| {
                let why = format!("{} ({})", victim.pod.name, victim.reason.detail);
                (victim.pod.uid.clone(), why)
            });
            episode.chosen.extend(victims);
        }
    }

    /// Takes an event before the controller does, so that what it changes can be seen.
    pub fn handle_event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        if matches!(event, Event::SnapshotBegin(_)) {
            // A list shows what is, and not what was done.
            self.episodes.clear();
            self.due.clear();
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
            } => self.pod_going(now, controller, (namespace, name, uid)),
            Event::ReplicaSetApplied(set) => self.set_applied(now, controller, set),
            Event::ReplicaSetDeleted { key, version: _ } => self.close(key),
            Event::SnapshotBegin(_) | Event::SnapshotEnd { .. } | Event::Bookmark { .. } => {}
        }
    }

    /// Judges what has come to rest. The controller must have been told all events.
    pub fn handle_timeout(&mut self, now: Timestamp, controller: &Controller) {
        while let Some((_, key)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            let Some(mut episode) = self.episodes.remove(&key) else {
                self.due.pop_first();
                continue;
            };
            self.due.remove(&(episode.due, key.clone()));
            let next = episode.judge(now, controller, &key, &mut self.differences);
            self.compared += std::mem::take(&mut episode.compared);
            if let Some(next) = next {
                // At least a little later, so that this ends.
                episode.due = next.max(now.plus(Span::millis(1)));
                self.due.insert((episode.due, key.clone()));
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

    /// Returns how often something that the other controller did was compared, alike or not.
    #[must_use]
    pub const fn compared(&self) -> u64 {
        self.compared
    }

    fn pod_applied(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let index = &controller.index;
        let known = index.pod_named(&pod.namespace, &pod.name);
        let known = known.filter(|(_, known)| known.uid == pod.uid);
        let Some((id, known)) = known else {
            if !index.is_gone_pod(&pod.uid) {
                self.pod_came(now, controller, pod);
            }
            return;
        };
        if pod.version <= known.version {
            return;
        }
        if pod.deleting && !known.deleting {
            self.pod_going(now, controller, (&pod.namespace, &pod.name, &pod.uid));
        }
        let resolve = |owner: &OwnerReference| index.resolve(&pod.namespace, owner);
        let before = known.controller.as_deref().and_then(resolve);
        let after = pod.controller.as_ref().and_then(resolve);
        let entry = (known.name.clone(), id);
        if let (None, Some(set)) = (&known.controller, after) {
            self.claimed(
                now,
                controller,
                set,
                |set| !set.adopts.contains(&entry),
                pod,
            );
        }
        if let (Some(set), None) = (before, &pod.controller) {
            self.claimed(
                now,
                controller,
                set,
                |set| !set.releases.contains(&entry),
                pod,
            );
        }
    }

    /// Notes a pod that is there for the first time: its owner made it.
    fn pod_came(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let owner = pod
            .controller
            .as_ref()
            .filter(|_| !pod.deleting && !pod.phase.has_ended());
        let Some(id) = owner.and_then(|owner| controller.index.resolve(&pod.namespace, owner))
        else {
            return;
        };
        let Some(set) = controller.index.set(id) else {
            return;
        };
        if !set
            .selector()
            .is_some_and(|selector| selector.matches(&pod.labels))
        {
            return;
        }
        let active = set.counts.active.saturating_add(1);
        let wanted = set.wanted();
        let episode = self.acted(now, &set.object.key);
        episode.made = episode.made.saturating_add(1);
        episode.active_most = episode.active_most.max(active);
        episode.wanted_most = episode.wanted_most.max(wanted);
    }

    /// Notes a pod that goes, and whether it would have been chosen on the view of this moment.
    fn pod_going(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        (namespace, name, uid): (&str, &str, &Uid),
    ) {
        let index = &controller.index;
        let Some((pod, entry)) = index.pod_named(namespace, name) else {
            return;
        };
        if entry.uid != *uid || !entry.counted.active {
            return;
        }
        let set = entry.controller.as_deref();
        let Some(id) = set.and_then(|owner| index.resolve(namespace, owner)) else {
            return;
        };
        let Some(set) = index.set(id) else { return };
        let surplus = usize::try_from(set.surplus()).unwrap_or(0);
        let episode = self.acted(now, &set.object.key);
        let is_strange = |episode: &Episode| surplus > 0 && !episode.chosen.contains_key(uid);
        for ago in DECIDED_AGO {
            if !is_strange(episode) {
                break;
            }
            let chosen = index.victims(id, surplus, now.plus(ago));
            let chosen = chosen.into_iter().filter_map(|chosen| {
                let pod = index.pod(chosen.id)?;
                let why = format!("{} ({})", pod.name, chosen.detail);
                Some((pod.uid.clone(), why))
            });
            episode.chosen.extend(chosen);
        }
        if is_strange(episode) {
            let chosen = index.victims(id, surplus, now);
            let open = index.order_is_open(id, pod, &chosen, now);
            episode.strangers.push((name.into(), open));
        }
        episode.gone.insert(uid.clone());
    }

    /// Notes a change of owner; one that was not due is looked at again when all has settled.
    fn claimed(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        id: SetId,
        is_doubtful: impl FnOnce(&crate::index::Set) -> bool,
        pod: &Pod,
    ) {
        let Some(set) = controller.index.set(id) else {
            return;
        };
        let doubtful = is_doubtful(set);
        let episode = self.acted(now, &set.object.key);
        episode.claimed = episode.claimed.saturating_add(1);
        if doubtful {
            episode.doubtful.push((pod.name.clone(), pod.uid.clone()));
        }
    }

    fn set_applied(&mut self, now: Timestamp, controller: &Controller, set: &ReplicaSet) {
        let known = controller
            .index
            .set_named(&set.key.namespace, &set.key.name);
        let known = known.and_then(|id| controller.index.set(id));
        let before = known.filter(|known| known.object.key == set.key);
        let Some(before) = before.map(crate::index::Set::wanted) else {
            return;
        };
        let wanted = set.replicas.max(0);
        if before != wanted {
            let episode = self.acted(now, &set.key);
            episode.wanted_most = episode.wanted_most.max(before).max(wanted);
        }
    }

    /// Returns the episode of a ReplicaSet to which something happens at this moment.
    fn acted(&mut self, now: Timestamp, key: &Key) -> &mut Episode {
        let episode = self.episode(now, key);
        // Whatever was to be looked at before waits until this has settled.
        let before = std::mem::replace(&mut episode.due, now.plus(SETTLED));
        episode.changed = now;
        self.reschedule(before, key)
    }

    /// Returns the episode of a ReplicaSet, which is judged in a short while.
    fn look_soon(&mut self, now: Timestamp, key: &Key) -> &mut Episode {
        let episode = self.episode(now, key);
        let soon = episode.due.min(now.plus(SETTLED));
        let before = std::mem::replace(&mut episode.due, soon);
        self.reschedule(before, key)
    }

    fn reschedule(&mut self, before: Timestamp, key: &Key) -> &mut Episode {
        self.due.remove(&(before, key.clone()));
        let episode = self
            .episodes
            .get_mut(key)
            .expect("its caller has just changed it");
        self.due.insert((episode.due, key.clone()));
        episode
    }

    /// Returns the episode of a ReplicaSet; one that begins is judged in a while.
    fn episode(&mut self, now: Timestamp, key: &Key) -> &mut Episode {
        let due = &mut self.due;
        self.episodes.entry(key.clone()).or_insert_with(|| {
            let episode = Episode::new(now);
            due.insert((episode.due, key.clone()));
            episode
        })
    }

    fn close(&mut self, key: &Key) {
        if let Some(episode) = self.episodes.remove(key) {
            self.due.remove(&(episode.due, key.clone()));
        }
    }
}
