//! Compares the decisions with the acts of another controller (modes SHADOW and ADVISE): the same stream shows both.
//!
//! # Theory of operation
//! The other controller acts on an older view, and the streams of pods and ReplicaSets have no common order. So the server compares only
//! where both must have seen the same:
//!
//! ```text
//! change of a ReplicaSet or its pods ─▶ Episode ── at rest for 10 s ─▶ owners, number of pods, status: is anything due?
//!                                          │                                └── yes, for 30 s ─▶ difference
//!                                          └── steady for 5 s, then scaled, and a pod is deleted within 2 s ─▶ is it the right one?
//! ```
//! After a create, there are no more active pods than were desired since the last rest. The selector matches an adopted pod.
//!
//! **Invariant:** a late act is no difference. A lasting difference is reported once.
//! **Invariant:** each decision that is not compared is counted.
//! **Invariant:** the number of events limits the work, and the number of changing ReplicaSets the memory.
//!
//! Deliberately outside: who acted. A pod that is deleted while none is surplus counts as deleted by others.

mod episode;
mod rest;
mod results;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use decree_api::v1::{self, Difference, Subject};
use decree_core::{
    After, Controller, Deletable, Event, Held, HeldQueue, Key, KnownSet, OperationResult, Pod,
    ReplicaSet, Span, Timestamp,
};

use self::{
    episode::{Change, Episode, STEADY},
    rest::SKEW,
    results::{Results, difference},
};
use crate::{
    held_message::HeldMessage,
    wire::encode::{self, ClusterRef},
};

/// The number of pods that upstream deletes with one decision.
const BURST: usize = 500;
/// The number of pods that may be examined for each event, and the maximum number that events save: some ten milliseconds of work.
const LOOKS_PER_EVENT: usize = 128;
const LOOKS_MAX: usize = 50_000;
/// The maximum number of differences that a session remembers.
const REMEMBERED_MAX: usize = 500;
/// The memory of an episode with its keys, and of a pod that may be deleted, in bytes.
const EPISODE_BYTES: usize = 400;
const DELETABLE_BYTES: usize = 100;

/// The comparison of a session, and its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadow {
    episodes: BTreeMap<Key, Episode>,
    /// When [`Self::handle_timeout`] is due.
    pub(crate) tick: Option<Timestamp>,
    /// When the labels of a pod without a controller last changed.
    relabeled: Timestamp,
    results: Results,
    remembered: HeldQueue<HeldMessage<Difference>>,
    /// The number of pods in the choices of episodes, and in those of episodes that have ended since the last tick.
    deletable: usize,
}

impl Shadow {
    /// Notes a decision as it leaves: it is compared at rest.
    pub(crate) fn handle_batch(&mut self, now: Timestamp, controller: &Controller, key: &Key) {
        if let Some(set) = controller.inspect().replica_set(key) {
            self.change(now, &set, Change::Decided);
        }
    }

    /// Notes advice that was written, before the controller does: the other controller sees it later.
    pub(crate) fn handle_outcome(
        &mut self,
        now: Timestamp,
        controller: &Controller,
        result: &OperationResult,
    ) {
        if let OperationResult::Done { after, .. } = result
            && let Some(After::Pod(pod)) = after
        {
            self.pod_applied(now, controller, pod);
        }
    }

    /// Notes an event before the controller does, so that its change is visible.
    pub(crate) fn handle_event(&mut self, now: Timestamp, controller: &Controller, event: &Event) {
        self.results.looks = LOOKS_MAX.min(self.results.looks + LOOKS_PER_EVENT);
        if matches!(event, Event::SnapshotBegin(_)) {
            // A list shows the state, and not the acts.
            let episodes = std::mem::take(&mut self.episodes).into_values();
            episodes.for_each(|_| self.results.skip_episode());
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
            } => {
                let pod = controller.inspect().pod(namespace, name);
                if let Some(pod) = pod.filter(|pod| pod.uid == *uid)
                    && let Some(set) = owner(controller, &pod)
                {
                    self.pod_changed(now, &set, &pod, None);
                }
            }
            Event::ReplicaSetApplied(set) => self.set_applied(now, controller, set),
            Event::ReplicaSetDeleted { .. }
            | Event::SnapshotBegin(_)
            | Event::SnapshotEnd { .. }
            | Event::Bookmark { .. } => {}
        }
    }

    /// Compares what is due. The controller must have received all events.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp, controller: &Controller) {
        if self.tick.is_none_or(|tick| now < tick) {
            return;
        }
        self.episodes.retain(|key, episode| {
            let set = controller.inspect().replica_set(key);
            let set = set.filter(|set| !set.object().deleting && !set.is_quarantined());
            if let Some(set) = set.filter(|_| episode.due.is_some_and(|due| due <= now)) {
                episode.compare(now, &set, &mut self.results);
            }
            set.is_some() && !episode.is_over()
        });
        let choices = self.episodes.values().filter_map(|it| it.choice.as_ref());
        self.deletable = choices.map(|choice| choice.allowed.len()).sum();
        let due = self.episodes.values().filter_map(|it| it.due).min();
        let tick = due.map(|due| due.max(now.plus(Span::seconds(1))));
        // At the end of time nothing is later.
        self.tick = tick.filter(|tick| *tick > now);
    }

    /// Returns the next difference, noticed at `now` in `cluster`, and remembers it.
    pub(crate) fn poll_difference(
        &mut self,
        now: Timestamp,
        cluster: ClusterRef<'_>,
    ) -> Option<Difference> {
        let found = Difference {
            detect_time: Some(encode::time(now)),
            cluster: cluster.name.to_owned(),
            cluster_uid: cluster.uid.to_owned(),
            shard: cluster.shard.to_owned(),
            ..self.results.found.pop()?
        };
        if self.remembered.len() == REMEMBERED_MAX {
            self.remembered.pop_front();
        }
        self.remembered.push_back(HeldMessage(found.clone()));
        Some(found)
    }

    /// Returns the results of all comparisons, and the differences of a ReplicaSet, or of all with empty names, the newest first.
    pub(crate) fn found(&self, namespace: &str, name: &str) -> v1::ListDifferencesResponse {
        let is = |wanted: &str, have: &str| wanted.is_empty() || wanted == have;
        let asked = |difference: &&Difference| {
            let set = difference.replica_set.as_ref();
            set.is_some_and(|set| is(namespace, &set.namespace) && is(name, &set.name))
        };
        let remembered = self.remembered.iter().rev();
        let differences = remembered.map(|HeldMessage(found)| found).filter(asked);
        v1::ListDifferencesResponse {
            differences: differences.cloned().collect(),
            shadows: 1,
            compared: self.comparisons()[0],
            agreements: self.results.agreements().collect(),
            deleted_by_others: self.results.deleted_by_others,
            ..v1::ListDifferencesResponse::default()
        }
    }

    /// The numbers of decisions that were compared, and that were not comparable.
    pub(crate) fn comparisons(&self) -> [u64; 2] {
        let all = self.results.agreements();
        let all = all.map(|it| [it.compared, it.not_compared]);
        all.fold([0; 2], |sum, it| [sum[0] + it[0], sum[1] + it[1]])
    }

    fn pod_applied(&mut self, now: Timestamp, controller: &Controller, pod: &Pod) {
        let known = controller.inspect().pod(&pod.namespace, &pod.name);
        let after = owner(controller, pod);
        let Some(mut known) = known.filter(|known| known.uid == pod.uid) else {
            let is_new = !controller.inspect().is_gone_pod(&pod.uid);
            if let Some(set) = after.filter(|_| is_new) {
                let active = set.active() + i32::from(is_replica(&set, pod));
                self.change(now, &set, Change::Created(active));
            }
            return;
        };
        if pod.version <= known.version {
            return;
        }
        known.version = pod.version;
        let before = owner(controller, &known);
        let uid = |set: Option<KnownSet<'_>>| set.map(|set| set.object().key.uid.clone());
        if uid(before) != uid(after) {
            let is_orphan = known.controller.is_none();
            let adopter = after.filter(|set| is_orphan && !set.selects(&known));
            let wrong = adopter.and_then(|set| self.adopt(now, &set, pod));
            for set in before.into_iter().chain(after) {
                self.change(now, &set, Change::Claimed(wrong.clone().map(Box::new)));
            }
        } else if let Some(set) = before {
            if known != *pod {
                self.pod_changed(now, &set, &known, Some(pod));
            }
        } else if known.labels != pod.labels {
            self.relabeled = now;
        }
    }

    /// Notes a pod that changes, or goes, under its owner.
    fn pod_changed(&mut self, now: Timestamp, set: &KnownSet<'_>, known: &Pod, new: Option<&Pod>) {
        let pod = new.unwrap_or(known);
        let goes = new.is_none_or(|pod| pod.state.deleting);
        let was_replica = is_replica(set, known);
        // An eviction or the loss of a node is no decision.
        if was_replica && goes && !pod.state.disruption_target {
            let choice = self.choice(now, set);
            self.change(now, set, Change::Deleted(pod, choice));
        } else if was_replica || is_replica(set, pod) {
            self.change(now, set, Change::Moved);
        } else {
            self.change(now, set, Change::Other);
        }
    }

    /// Returns the pods that the other controller can choose, if its view was stable and this is the first deletion of its decision.
    fn choice(&mut self, now: Timestamp, set: &KnownSet<'_>) -> Option<Deletable> {
        let surplus = usize::try_from(set.surplus()).ok()?;
        let own = self.episodes.get(&set.object().key);
        if !own.is_some_and(|episode| episode.is_just_scaled(now)) {
            return None;
        }
        let related = || set.siblings().chain([&set.object().key]);
        let looks = &mut self.results.looks;
        *looks = looks.checked_sub(related().count())?;
        // A deletion shortly before makes the view unstable.
        let mut episodes = related().filter_map(|key| self.episodes.get(key));
        let is_stable = episodes.all(|episode| episode.is_steady(now));
        if !is_stable || surplus == 0 || surplus > BURST {
            return None;
        }
        let decided = [now.plus(Span(-STEADY.0)), now.plus(SKEW)];
        let choice = set.deletable(surplus, decided, looks)?;
        self.deletable += choice.allowed.len();
        Some(choice)
    }

    /// Compares the adoption of a pod whose labels did not match before.
    fn adopt(&mut self, now: Timestamp, set: &KnownSet<'_>, pod: &Pod) -> Option<Difference> {
        if now < self.relabeled.plus(STEADY) {
            self.results.of(Subject::Adoption).not_compared += 1;
            return None;
        }
        let (key, name) = (&set.object().key, &pod.name);
        let sides = [format!("leave {name} alone"), format!("adopted {name}")];
        let why = "the selector has not matched its labels";
        let is_wrong = !set.selects(pod);
        is_wrong.then(|| difference(Subject::Adoption, key, sides, why))
    }

    fn set_applied(&mut self, now: Timestamp, controller: &Controller, set: &ReplicaSet) {
        let known = controller.inspect().replica_set(&set.key);
        let Some(known) = known.filter(|known| known.object().version < set.version) else {
            return;
        };
        let (object, desired) = (known.object(), set.replicas.max(0));
        if known.wanted() != desired || set.generation != object.generation {
            let is_gap = set.generation > object.generation.saturating_add(1);
            self.change(now, &known, Change::Scaled(desired, is_gap));
        }
        if set.status != object.status {
            self.change(now, &known, Change::Written);
        }
    }

    fn change(&mut self, now: Timestamp, set: &KnownSet<'_>, change: Change<'_>) {
        let episode = self.episodes.entry(set.object().key.clone());
        let episode = episode.or_insert_with(|| Episode::new(now, set.wanted()));
        episode.change(now, set, change, &mut self.results);
        let ticks = self.tick.into_iter().chain(episode.due);
        self.tick = ticks.min();
    }
}

impl Held for Shadow {
    fn bytes(&self) -> usize {
        let Self {
            episodes,
            tick: _,
            relabeled: _,
            // Each tick empties it.
            results: _,
            remembered,
            deletable,
        } = self;
        EPISODE_BYTES * episodes.len() + DELETABLE_BYTES * deletable + remembered.bytes()
    }
}

/// Whether a pod of a ReplicaSet counts as one of its replicas.
fn is_replica(set: &KnownSet<'_>, pod: &Pod) -> bool {
    pod.state.is_active() && set.selects(pod)
}

/// Returns the ReplicaSet that a pod names as its controller, if the ReplicaSet is known.
fn owner<'a>(controller: &'a Controller, pod: &Pod) -> Option<KnownSet<'a>> {
    let owner = pod.controller.as_ref()?;
    controller.inspect().owner(&pod.namespace, owner.view())
}
