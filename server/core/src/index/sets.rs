//! The life of a ReplicaSet in the index.

use std::sync::Arc;

use super::{
    IfUnknown, Index, Made, cost,
    counting::count_anew,
    map, paid,
    pod::Contribution,
    pods::is_newer,
    set::{Set, SetId},
};
use crate::object::{Key, Kind, ReplicaSet, ResourceVersion, Resume, Uid};

impl Index {
    /// Applies a ReplicaSet from the stream, unless the index knows a newer state. Returns the older ReplicaSet of the same name that it
    /// removed, and the applied one. A ReplicaSet at the known version counts as applied too, since a resync relies on it (spec 3.2).
    pub(crate) fn apply_set(
        &mut self,
        object: ReplicaSet,
        if_unknown: IfUnknown,
    ) -> (Option<SetId>, Option<SetId>) {
        let (key, version, snapshot) = (&object.key, object.version, self.snapshot);
        let tombstones = &self.tombstones;
        let gone = if_unknown == IfUnknown::Gone
            || tombstones.covers(Kind::ReplicaSet, &key.uid.0, version);
        let before = self.set_named(&key.namespace, &key.name);
        if let Some(id) = before
            && let Some(set) = self.set_mut(id)
        {
            let known = set.object.version;
            let is_newer = is_newer(version, known);
            if set.object.key.uid == key.uid {
                set.snapshot = snapshot;
                if is_newer || (version == known && self.can_have_back(id, &object)) {
                    self.change_set(id, object);
                }
                return (None, (is_newer || version == known).then_some(id));
            }
            if gone || !is_newer {
                return (None, None);
            }
            self.take_out_set(id);
        } else if gone {
            return (None, None);
        }
        let id = self.add_set(object);
        if if_unknown == IfUnknown::Doubtful {
            self.doubtful_sets.insert(id);
        }
        (before, Some(id))
    }

    /// Applies a known ReplicaSet as a status write returned it, unless the index knows a newer state.
    pub(crate) fn apply_written_set(&mut self, id: SetId, object: ReplicaSet) {
        let known = self.set(id).map(|set| set.object.version);
        if known.is_some_and(|known| is_newer(object.version, known)) {
            self.change_set(id, object);
        }
    }

    /// Counts the memory of the names that are kept for the next creates of a ReplicaSet.
    pub(crate) fn count_names(&mut self, id: SetId) {
        if let Some(set) = self.sets.get_mut(&id) {
            self.bytes -= set.name_bytes;
            set.name_bytes = set.cursor.kept_names() * cost::KEPT_NAME;
            self.bytes += set.name_bytes;
        }
    }

    /// Forgets the lost creates of the ReplicaSets that people have resumed since the last call. Returns these.
    pub(crate) fn take_resumed(&mut self) -> Vec<SetId> {
        let resumed = std::mem::take(&mut self.resumed);
        let named = |(namespace, name): &(Arc<str>, Arc<str>)| self.set_named(namespace, name);
        resumed.iter().filter_map(named).collect()
    }

    /// Removes a ReplicaSet if it is known by this UID, and remembers that it is gone.
    pub(crate) fn remove_set(
        &mut self,
        key: &Key,
        version: Option<ResourceVersion>,
    ) -> Option<SetId> {
        if version.is_some() {
            self.tombstones
                .insert(Kind::ReplicaSet, key.uid.clone(), version, 0);
        }
        let id = self.set_named(&key.namespace, &key.name)?;
        self.set(id).filter(|set| set.object.key.uid == key.uid)?;
        self.take_out_set(id);
        Some(id)
    }

    fn add_set(&mut self, mut object: ReplicaSet) -> SetId {
        object.key.namespace = self.namespaces.shared_name(&object.key.namespace);
        share_texts(&mut object);
        let id = self.next_set;
        self.next_set += 1;
        let mut set = Set::new(id, self.names, object);
        set.snapshot = self.snapshot;
        let key = set.object.key.clone();
        if let Some(ledger) = &mut self.ledger {
            let resumed = ledger.resume_missed(self.now, &key, &set.object.resume);
            self.resumed.extend(resumed);
        }
        set.owned = map::remove(&mut self.owned_by_unknown, &key).unwrap_or_default();
        let content = self.namespaces.entry(&key.namespace);
        content.sets.insert(key.name, id);
        self.bytes += cost::replica_set(&set.object);
        self.large.weigh(id, cost::content(&set.object));
        self.sets.insert(id, Box::new(set));
        self.siblings.extend(self.sibling(id));
        count_anew(self, id);
        id
    }

    pub(super) fn change_set(&mut self, id: SetId, object: ReplicaSet) {
        let Some(set) = self.set(id) else { return };
        let old = &set.object;
        let same_counts = old.selector == object.selector
            && old.template_labels == object.template_labels
            && old.min_ready_seconds == object.min_ready_seconds;
        let same_owner = old.controller == object.controller;
        if !same_owner && let Some(sibling) = self.sibling(id) {
            self.siblings.remove(&sibling);
        }
        if let Some(set) = self.sets.get_mut(&id) {
            let key = set.object.key.clone();
            self.bytes -= cost::replica_set(&set.object);
            if set.object.resume != object.resume
                && !object.resume.is_empty()
                && let Some(ledger) = &mut self.ledger
            {
                let extent = Resume::of(&object.resume);
                self.resumed.extend(ledger.resume(self.now, &key, extent));
            }
            set.object = ReplicaSet { key, ..object };
            share_texts(&mut set.object);
            self.bytes += cost::replica_set(&set.object);
            self.large.weigh(id, cost::content(&set.object));
        }
        if !same_owner {
            self.siblings.extend(self.sibling(id));
        }
        if !same_counts {
            count_anew(self, id);
        }
    }

    /// Removes a ReplicaSet from all indices. Nobody follows its young pods any more, and those whose owner is presumed are orphans.
    pub(crate) fn take_out_set(&mut self, id: SetId) {
        if let Some(sibling) = self.sibling(id) {
            self.siblings.remove(&sibling);
        }
        let young = paid::young_creates(self, id);
        let Some(mut set) = self.sets.remove(&id) else {
            return;
        };
        let (key, owned) = (&set.object.key, std::mem::take(&mut set.owned));
        paid::lose_unfollowed(self, key, young);
        for pod in &owned {
            if let Some(entry) = self.pods.get_mut(*pod) {
                entry.counted = Contribution::default();
                (entry.made, entry.is_victim) = (Made::default(), false);
            }
        }
        if !owned.is_empty() {
            self.owned_by_unknown.insert(key.clone(), owned.clone());
        }
        self.bytes -= cost::replica_set(&set.object) + set.name_bytes;
        self.large.remove(id);
        self.questions.forget(id);
        if let Some(content) = self.namespaces.get_mut(&key.namespace) {
            content.sets.remove(&key.name);
        }
        self.namespaces.drop_empty(&key.namespace);
        owned.into_iter().for_each(|pod| self.disown(pod));
    }

    fn sibling(&self, id: SetId) -> Option<(Uid, SetId)> {
        let owner = self.set(id)?.object.controller.as_ref()?;
        Some((owner.uid.clone(), id))
    }
}

fn share_texts(object: &mut ReplicaSet) {
    if let Ok(selector) = &mut object.selector {
        selector.share(&object.template_labels);
    }
    if let Some(owner) = &mut object.controller {
        owner.share();
    }
}
