//! The pods as the agent has seen them, counted by their ReplicaSets, for the [`rules`](crate::execute::rules).
//!
//! The agent's own operations count from their start. A create counts as one more pod until the agent sees the pod or knows that the create
//! failed. A delete counts as one active pod fewer. An operation of unknown effect counts until it can have no effect.
//!
//! Counts are by the namespace of the pods and the UID of their controller. So the order in which the agent sees a ReplicaSet and its pods
//! does not matter, and a pod that names the UID of a ReplicaSet in another namespace does not count for that ReplicaSet.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    num::NonZeroU64,
    sync::Arc,
};

use decree_api::v1;
use jiff::Timestamp;

use self::counts::{Controller, Counts};
use crate::{
    api::parse_version,
    nodes::{Hint, NodeChanges, NodeEvent, Nodes},
    watch::Part,
};

/// The kind of a ReplicaSet in controller references.
const KIND: &str = "ReplicaSet";

pub(crate) type Labels = HashMap<String, String>;

/// The pods by uid. Owned and changed by one [`View`](crate::view::View).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pods {
    by_uid: HashMap<String, Pod>,
    /// The counts of each controller's pods, by its [key].
    controllers: HashMap<Arc<str>, Controller>,
    /// The active pods of all ReplicaSets.
    pub(crate) of_replica_sets: u32,
    /// The latest labels of an orphan: orphans that come together mostly have the same.
    orphan_labels: Arc<Labels>,
    /// While a list is open, the pods under deletion that the list has not shown yet.
    unlisted: HashSet<String>,
    /// The nodes; `None` if the agent does not read them.
    pub(crate) nodes: Option<Nodes>,
    /// Hashes names. The keys are not known outside, so nobody can find two names with one hash.
    hasher: RandomState,
}

#[derive(Clone, Debug)]
pub(crate) struct Pod {
    /// The [key] of its controller; empty for orphans.
    pub(crate) controller: Arc<str>,
    pub(crate) labels: Arc<Labels>,
    pub(crate) state: State,
    pub(crate) cost: Cost,
    /// The hash of its namespace and name: the names of all pods would take far more memory.
    names: u64,
    /// Its controller is a ReplicaSet, as the pod says.
    is_of_replica_set: bool,
    /// The agent deletes the pod, or has tried to with an unknown result.
    leaving: bool,
    /// Its node, if the agent reads nodes.
    node: Option<Arc<String>>,
    /// An annotation says that somebody will evict the pod.
    is_announced: bool,
    /// What its node or its annotation announce.
    pub(crate) hint: Hint,
    pub(crate) version: Option<NonZeroU64>,
}

/// Who has set the deletion cost of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    Nobody,
    /// An agent that advises, which never writes 0.
    Ours,
    Others,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Neither ended nor under deletion.
    Active { ready: bool },
    /// Under deletion, and not ended.
    Terminating,
    /// Succeeded or failed. It is kept unless it is under deletion.
    Ended { kept: bool },
    /// Gone, as the answer to a call says. Older states from the watch change nothing.
    Gone,
}

/// The key of a controller: the namespace of its pods, and its UID.
pub(crate) fn key(namespace: &str, uid: &str) -> String {
    format!("{namespace}/{uid}")
}

impl Pods {
    /// Replaces all pods by the pods of a list, page by page; `count` is an estimate. The agent's operations and the peaks stay. While the
    /// list is open, only the pods that it has shown count.
    pub(crate) fn list(
        &mut self,
        part: Part,
        count: usize,
        pods: impl IntoIterator<Item = v1::Pod>,
    ) {
        if part.begins {
            self.forget_all();
        }
        self.by_uid.reserve(count);
        for pod in pods {
            self.apply(&pod);
            if self.unlisted.remove(&pod.uid) {
                self.set_leaving(&pod.uid, true);
            }
        }
        if part.ends {
            self.unlisted = HashSet::new();
            self.controllers.retain(|_, it| !it.shrink());
            if let Some(nodes) = &mut self.nodes {
                nodes.sweep();
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "all get the same, in whichever order"
    )]
    fn forget_all(&mut self) {
        let leaving = std::mem::take(&mut self.by_uid)
            .into_iter()
            .filter_map(|(uid, pod)| pod.leaving.then_some(uid));
        // Entries of a list that did not complete stay.
        self.unlisted.extend(leaving);
        for controller in self.controllers.values_mut() {
            controller.counts = Counts::default();
        }
        self.of_replica_sets = 0;
    }

    /// An older state of the pod changes nothing.
    pub(crate) fn apply(&mut self, pod: &v1::Pod) {
        let version = parse_version(&pod.resource_version).and_then(NonZeroU64::new);
        let known = self.by_uid.get(&pod.uid);
        let is_older = |known: &Pod| {
            known.state == State::Gone || (version.is_some() && version < known.version)
        };
        if known.is_some_and(is_older) {
            return;
        }
        let leaving = known.is_some_and(|known| known.leaving);
        let is_new = known.is_none();
        let names = self.hash_names(&pod.namespace, &pod.name);
        self.count_out(&pod.uid);
        let (controller, labels) = self.shared(pod);
        let state = State::of(pod);
        let named = Some(&pod.node_name).filter(|name| !name.is_empty());
        let nodes = self.nodes.as_mut().zip(named);
        let owner = pod.controller.as_ref();
        let mut entry = Pod {
            is_of_replica_set: owner.is_some_and(|it| it.kind == KIND),
            leaving: leaving && state.can_leave(),
            controller,
            labels,
            state,
            node: nodes.map(|(nodes, name)| nodes.shared(name)),
            is_announced: pod.leaving,
            hint: Hint::Stays,
            cost: Cost::of(pod),
            names,
            version,
        };
        entry.hint = entry.hint(self.nodes.as_ref());
        self.count_in(&entry);
        // An active pod has the name, so a create of that name has no effect. That includes a create that began after this was known.
        let settles = is_new || state.is_active();
        if settles && let Some(controller) = self.controllers.get_mut(&entry.controller) {
            controller.creates.remove(&pod.name);
        }
        if let Some(before) = self.by_uid.insert(pod.uid.clone(), entry) {
            self.release(before);
        }
    }

    /// Takes news of the nodes. Returns what they change.
    #[expect(
        clippy::disallowed_methods,
        reason = "all get the same, in whichever order"
    )]
    pub(crate) fn apply_nodes(&mut self, events: Vec<NodeEvent>) -> NodeChanges {
        let Some(mut nodes) = self.nodes.take() else {
            return NodeChanges::default();
        };
        let changes = nodes.handle(events);
        let turns = |pod: &Pod| {
            pod.node
                .as_ref()
                .is_some_and(|it| changes.turned.contains(it))
        };
        if !changes.turned.is_empty() {
            let turned = self.by_uid.iter().filter(|(_, pod)| turns(pod));
            for uid in turned.map(|(uid, _)| uid.clone()).collect::<Vec<_>>() {
                self.change(&uid, |pod| pod.hint = pod.hint(Some(&nodes)));
            }
        }
        self.nodes = Some(nodes);
        changes
    }

    pub(crate) fn delete(&mut self, uid: &str) {
        self.count_out(uid);
        if let Some(pod) = self.by_uid.remove(uid) {
            self.release(pod);
        }
    }

    /// Marks a pod as gone, as the answer to a call says, until the watch or a list shows it.
    pub(crate) fn mark_gone(&mut self, uid: &str) {
        self.change(uid, |pod| {
            (pod.state, pod.leaving) = (State::Gone, false);
        });
    }

    /// The number of pods.
    pub(crate) fn count(&self) -> usize {
        self.by_uid.len()
    }

    pub(crate) fn get(&self, uid: &str) -> Option<&Pod> {
        self.by_uid.get(uid).filter(|pod| pod.state != State::Gone)
    }

    /// Whether the pod of this UID has this namespace and name, too. A call goes to the name: if that is of another pod or of none, its
    /// answer tells nothing about the pod of the UID.
    pub(crate) fn is_named(&self, pod: &v1::ObjectRef) -> bool {
        let names = self.hash_names(&pod.namespace, &pod.name);
        self.get(&pod.uid).is_some_and(|known| known.names == names)
    }

    pub(crate) fn counts(&self, controller: &str) -> Counts {
        let known = self.controllers.get(controller);
        known.map(|it| it.counts).unwrap_or_default()
    }

    /// The highest counts of a controller since the last [`reset_peak`](Self::reset_peak).
    pub(crate) fn peak(&self, controller: &str) -> Counts {
        let known = self.controllers.get(controller);
        known.map(|it| it.peak).unwrap_or_default()
    }

    /// The number of the controller's pods under creation, without the pod of this name.
    pub(crate) fn creates_besides(&self, controller: &str, name: &str) -> usize {
        let besides = |it: &Controller| it.creates.len() - usize::from(it.creates.contains(name));
        self.controllers.get(controller).map_or(0, besides)
    }

    /// The number of the controller's active pods under deletion, without the pod of this UID.
    pub(crate) fn leaving_besides(&self, controller: &str, uid: &str) -> u32 {
        let is_own = |pod: &Pod| pod.leaving && pod.state.is_active();
        let own = self.by_uid.get(uid).is_some_and(is_own);
        self.counts(controller).leaving - u32::from(own)
    }

    /// The number of the ReplicaSet's ended pods that nobody deletes, with the pod of this UID; `None` if it is not one to delete.
    pub(crate) fn kept_with(&self, controller: &str, uid: &str) -> Option<u32> {
        let pod = self.get(uid)?;
        let is_kept = pod.is_of_replica_set && matches!(pod.state, State::Ended { kept: true });
        is_kept.then(|| self.counts(controller).ended + u32::from(pod.leaving))
    }

    /// Whether any controller with a pod that has a deletion cost of ours is one of these, by its namespace and UID.
    pub(crate) fn any_advised(&self, is_one: impl Fn((&str, &str)) -> bool) -> bool {
        let mut found = false;
        for (key, it) in &self.controllers {
            found |= it.counts.advised > 0 && key.split_once('/').is_some_and(&is_one);
        }
        found
    }

    /// Keeps the peak of a ReplicaSet, also without pods, until the ReplicaSet is [forgotten](Self::forget).
    pub(crate) fn know(&mut self, replica_set: &str) {
        let entry = self.controllers.entry(replica_set.into());
        entry.or_default().is_known = true;
    }

    pub(crate) fn forget(&mut self, replica_set: &str) {
        if let Some(it) = self.controllers.get_mut(replica_set) {
            it.is_known = false;
        }
        self.reset_peak(replica_set);
    }

    /// Forgets the ReplicaSets whose UIDs are not kept.
    pub(crate) fn retain_known(&mut self, keep: impl Fn(&str) -> bool) {
        for (key, it) in &mut self.controllers {
            if !key.split_once('/').is_some_and(|(_, uid)| keep(uid)) {
                (it.is_known, it.peak) = (false, it.counts);
            }
        }
        self.controllers.retain(|_, it| !it.shrink());
    }

    pub(crate) fn reset_peak(&mut self, controller: &str) {
        if let Some(it) = self.controllers.get_mut(controller) {
            it.peak = it.counts;
        }
        self.drop_empty(controller);
    }

    pub(crate) fn begin_create(&mut self, controller: &str, name: &str) {
        let it = self.controllers.entry(controller.into()).or_default();
        it.unknown.retain(|(_, known)| known != name);
        it.creates.insert(name.to_owned());
    }

    /// Ends a create. If its effect is unknown, it may take effect until a time.
    pub(crate) fn end_create(&mut self, controller: &str, name: &str, until: Option<Timestamp>) {
        if let Some(it) = self.controllers.get_mut(controller) {
            match until {
                None => drop(it.creates.remove(name)),
                Some(until) => it.unknown.push((until, name.to_owned())),
            }
        }
        self.drop_empty(controller);
    }

    pub(crate) fn begin_delete(&mut self, controller: &str, uid: &str) {
        if let Some(it) = self.controllers.get_mut(controller) {
            it.unknown.retain(|(_, known)| known != uid);
        }
        self.set_leaving(uid, true);
    }

    /// Ends a delete, as [`end_create`](Self::end_create). The caller has [applied](Self::apply) the result before.
    pub(crate) fn end_delete(&mut self, controller: &str, uid: &str, until: Option<Timestamp>) {
        match (until, self.controllers.get_mut(controller)) {
            (Some(until), Some(it)) => it.unknown.push((until, uid.to_owned())),
            (None, _) | (_, None) => self.set_leaving(uid, false),
        }
    }

    /// Forgets the controller's operations of unknown effect that can have no effect any more.
    pub(crate) fn forget_expired(&mut self, now: Timestamp, controller: &str) {
        let Some(it) = self.controllers.get_mut(controller) else {
            return;
        };
        let expired = it.unknown.extract_if(.., |(until, _)| *until <= now);
        for (_, pod) in expired.collect::<Vec<_>>() {
            if let Some(it) = self.controllers.get_mut(controller) {
                it.creates.remove(&pod);
            }
            self.set_leaving(&pod, false);
        }
    }

    fn hash_names(&self, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }

    fn set_leaving(&mut self, uid: &str, leaving: bool) {
        self.change(uid, |pod| pod.leaving = leaving && pod.state.can_leave());
    }

    fn change(&mut self, uid: &str, change: impl FnOnce(&mut Pod)) {
        self.count_out(uid);
        if let Some((uid, mut pod)) = self.by_uid.remove_entry(uid) {
            change(&mut pod);
            self.count_in(&pod);
            self.by_uid.insert(uid, pod);
        }
    }

    fn count_in(&mut self, pod: &Pod) {
        if pod.controller.is_empty() {
            return;
        }
        // The entry may be gone if the pod counted for nothing until now.
        let entry = self.controllers.entry(Arc::clone(&pod.controller));
        let it = entry.or_default();
        it.counts.change(pod, |count, by| *count += by);
        it.peak = it.peak.max(it.counts);
        self.of_replica_sets += u32::from(pod.is_of_replica_set && pod.state.is_active());
    }

    fn count_out(&mut self, uid: &str) {
        let Some(pod) = self.by_uid.get(uid) else {
            return;
        };
        if let Some(it) = self.controllers.get_mut(&pod.controller) {
            it.counts.change(pod, |count, by| *count -= by);
            self.of_replica_sets -= u32::from(pod.is_of_replica_set && pod.state.is_active());
        }
    }

    /// The key of a pod's controller and the pod's labels, both shared with pods that have the same.
    fn shared(&mut self, pod: &v1::Pod) -> (Arc<str>, Arc<Labels>) {
        let owner = pod.controller.as_ref();
        let key = owner.map_or_else(String::new, |it| key(&pod.namespace, &it.uid));
        let controller = match self.controllers.get_key_value(key.as_str()) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(key.as_str()),
        };
        let labels = match key.as_str() {
            "" => &mut self.orphan_labels,
            _ => {
                let entry = self.controllers.entry(Arc::clone(&controller));
                &mut entry.or_default().labels
            }
        };
        if **labels != pod.labels {
            *labels = Arc::new(pod.labels.clone());
        }
        (controller, Arc::clone(labels))
    }

    fn drop_empty(&mut self, controller: &str) {
        let known = self.controllers.get_mut(controller);
        if known.is_some_and(Controller::shrink) {
            self.controllers.remove(controller);
        }
    }

    /// Forgets what only this pod needed.
    fn release(&mut self, pod: Pod) {
        self.drop_empty(&pod.controller);
        if let Some((nodes, name)) = self.nodes.as_mut().zip(pod.node) {
            nodes.release(&name);
        }
    }
}

impl Pod {
    fn hint(&self, nodes: Option<&Nodes>) -> Hint {
        match (nodes, &self.node) {
            _ if self.is_announced => Hint::Leaving,
            (Some(nodes), Some(node)) => nodes.hint(node),
            (None, _) | (_, None) => Hint::Stays,
        }
    }

    /// Whether it has ended, and nobody deletes it.
    const fn is_kept(&self) -> bool {
        matches!(self.state, State::Ended { kept: true }) && !self.leaving
    }
}

impl Cost {
    fn of(pod: &v1::Pod) -> Self {
        match pod.deletion_cost.as_deref().filter(|it| !it.is_empty()) {
            None => Self::Nobody,
            cost if cost != pod.advised_cost.as_deref() => Self::Others,
            Some(cost) if cost.parse::<i32>() == Ok(0) => Self::Nobody,
            Some(_) => Self::Ours,
        }
    }
}

impl State {
    fn of(pod: &v1::Pod) -> Self {
        let has_ended = matches!(pod.phase(), v1::PodPhase::Succeeded | v1::PodPhase::Failed);
        let ready = pod.ready.as_ref().is_some_and(|ready| ready.ready);
        match (has_ended, pod.deletion_timestamp) {
            (true, deleted) => Self::Ended {
                kept: deleted.is_none(),
            },
            (false, Some(_)) => Self::Terminating,
            (false, None) => Self::Active { ready },
        }
    }

    pub(crate) const fn is_active(self) -> bool {
        matches!(self, Self::Active { .. })
    }

    /// Whether the agent can delete it.
    const fn can_leave(self) -> bool {
        matches!(self, Self::Active { .. } | Self::Ended { kept: true })
    }
}

mod counts;
#[cfg(test)]
mod tests;
