//! The life of a ReplicaSet in the index.

use super::{
    IfUnknown, Index, SetChange, cost,
    pod::Contribution,
    pods::is_newer,
    set::{Set, SetId},
};
use crate::{
    compact_uid::CompactUid,
    object::{Key, Kind, ReplicaSet, ResourceVersion, Timestamp},
};

impl Index {
    /// Applies a ReplicaSet from the stream, unless the index knows a newer state. Returns the changes in order: at most the removal of an
    /// older ReplicaSet of the same name, then this one. A ReplicaSet at the known version is reported too, since a resync relies on it
    /// (spec 3.2).
    pub(crate) fn apply_set(
        &mut self,
        now: Timestamp,
        object: ReplicaSet,
        if_unknown: IfUnknown,
    ) -> Vec<SetChange> {
        let gone = if_unknown == IfUnknown::Gone
            || self
                .tombstones
                .covers(Kind::ReplicaSet, &object.key.uid.0, object.version);
        let known = self.set_named(&object.key.namespace, &object.key.name);
        let known = known.and_then(|id| Some((id, self.set(id)?)));
        let known = known.map(|(id, set)| {
            let (new, known) = (object.version, set.object.version);
            (
                id,
                set.object.key.uid == object.key.uid,
                is_newer(new, known),
                new == known,
            )
        });
        match known {
            Some((id, true, newer, same)) => {
                self.mark_set(id);
                if newer {
                    self.change_set(now, id, object);
                }
                (newer || same)
                    .then_some(SetChange::Applied(id))
                    .into_iter()
                    .collect()
            }
            Some((id, false, true, _)) if !gone => {
                self.take_out_set(id);
                let new = self.add_shown_set(now, object, if_unknown);
                vec![SetChange::Removed(id), SetChange::Applied(new)]
            }
            None if !gone => vec![SetChange::Applied(
                self.add_shown_set(now, object, if_unknown),
            )],
            Some((_, false, _, _)) | None => Vec::new(),
        }
    }

    /// Applies a known ReplicaSet as a status write returned it, unless the index knows a newer state.
    pub(crate) fn apply_written_set(&mut self, now: Timestamp, id: SetId, object: ReplicaSet) {
        let newer = self
            .set(id)
            .is_some_and(|set| is_newer(object.version, set.object.version));
        if newer {
            self.change_set(now, id, object);
        }
    }

    /// Removes a ReplicaSet if it is known by this UID, and remembers that it is gone.
    pub(crate) fn remove_set(
        &mut self,
        key: &Key,
        version: Option<ResourceVersion>,
    ) -> Option<SetId> {
        if version.is_some() {
            self.tombstones
                .insert(Kind::ReplicaSet, CompactUid::of(&key.uid.0), version, 0);
        }
        let id = self.set_named(&key.namespace, &key.name)?;
        self.set(id).filter(|set| set.object.key.uid == key.uid)?;
        self.take_out_set(id);
        Some(id)
    }

    fn add_shown_set(
        &mut self,
        now: Timestamp,
        object: ReplicaSet,
        if_unknown: IfUnknown,
    ) -> SetId {
        let id = self.add_set(now, object);
        if if_unknown == IfUnknown::Doubtful {
            self.doubtful_sets.insert(id);
        }
        id
    }

    fn mark_set(&mut self, id: SetId) {
        if let Some(set) = self.sets.get_mut(&id) {
            set.snapshot = self.snapshot;
        }
    }

    fn add_set(&mut self, now: Timestamp, mut object: ReplicaSet) -> SetId {
        object.key.namespace = self.namespaces.shared_name(&object.key.namespace);
        share_texts(&mut object);
        let id = self.next_set;
        self.next_set += 1;
        let mut set = Set::new(id, self.names, object);
        set.snapshot = self.snapshot;
        let key = set.object.key.clone();
        set.owned = self.owned_by_unknown.remove(&key).unwrap_or_default();
        let content = self.namespaces.entry(&key.namespace);
        content.sets.insert(key.name, id);
        content
            .bases
            .entry(set.shared_name_base())
            .or_default()
            .insert(id);
        self.bytes += cost::replica_set(&set.object);
        self.sets.insert(id, Box::new(set));
        self.link_set(id);
        self.count_anew(now, id);
        id
    }

    fn change_set(&mut self, now: Timestamp, id: SetId, object: ReplicaSet) {
        let Some(set) = self.set(id) else { return };
        let old = &set.object;
        let same_links = old.selector == object.selector && old.controller == object.controller;
        let same_counts = same_links
            && old.template_labels == object.template_labels
            && old.min_ready_seconds == object.min_ready_seconds;
        if !same_links {
            self.unlink_set(id);
        }
        if let Some(set) = self.sets.get_mut(&id) {
            let key = set.object.key.clone();
            self.bytes -= cost::replica_set(&set.object);
            if asks(&set.object) != asks(&object) {
                set.create_back_off = None;
            }
            set.object = ReplicaSet { key, ..object };
            share_texts(&mut set.object);
            self.bytes += cost::replica_set(&set.object);
        }
        if !same_links {
            self.link_set(id);
        }
        if !same_counts {
            self.count_anew(now, id);
        }
    }

    pub(crate) fn take_out_set(&mut self, id: SetId) {
        self.unlink_set(id);
        self.uncount(id);
        let Some(mut set) = self.sets.remove(&id) else {
            return;
        };
        let owned = std::mem::take(&mut set.owned);
        if !owned.is_empty() {
            self.owned_by_unknown.insert(set.object.key.clone(), owned);
        }
        self.bytes -= cost::replica_set(&set.object);
        let key = &set.object.key;
        let Some(content) = self.namespaces.get_mut(&key.namespace) else {
            return;
        };
        content.sets.remove(&key.name);
        if let Some(ids) = content.bases.get_mut(set.name_base()) {
            ids.remove(id);
            if ids.is_empty() {
                content.bases.remove(set.name_base());
            }
        }
        self.namespaces.drop_empty(&key.namespace);
    }

    /// Adds the ReplicaSet to the indices by selector and by controller.
    fn link_set(&mut self, id: SetId) {
        let Some(set) = self.sets.get(&id) else {
            return;
        };
        if let Some(owner) = &set.object.controller {
            let siblings = self.siblings.entry(owner.uid.clone());
            siblings.or_default().insert(id);
        }
        if let (Some(selector), Some(content)) = (
            set.selector(),
            self.namespaces.get_mut(&set.object.key.namespace),
        ) {
            content.selectors.insert(id, selector);
        }
    }

    fn unlink_set(&mut self, id: SetId) {
        let Some(set) = self.sets.get(&id) else {
            return;
        };
        if let Some(owner) = &set.object.controller
            && let Some(siblings) = self.siblings.get_mut(&owner.uid)
        {
            siblings.remove(id);
            if siblings.is_empty() {
                self.siblings.remove(&owner.uid);
            }
        }
        if let (Some(selector), Some(content)) = (
            set.selector(),
            self.namespaces.get_mut(&set.object.key.namespace),
        ) {
            content.selectors.remove(id, selector);
        }
    }

    /// Takes the pods of a ReplicaSet that is being removed out of the counts.
    fn uncount(&mut self, id: SetId) {
        let Some(set) = self.sets.get_mut(&id) else {
            return;
        };
        set.reset();
        for pod in &set.owned {
            if let Some(entry) = self.pods.get_mut(*pod) {
                entry.counted = Contribution::default();
            }
        }
    }

    /// Counts all pods of the ReplicaSet again: the cost of a new selector, template or minimum ready time.
    fn count_anew(&mut self, now: Timestamp, id: SetId) {
        let Some(set) = self.sets.get_mut(&id) else {
            return;
        };
        set.reset();
        for at in 0..set.owned.len() {
            let pod = set.owned[at];
            if let Some(entry) = self.pods.get_mut(pod) {
                let labels = &self.groups.at(entry.group).labels;
                entry.counted = set.count_in(now, pod, entry, labels);
            }
        }
    }
}

/// Returns the values of the spec. For agents without generations, only these values show a change.
fn asks(set: &ReplicaSet) -> impl PartialEq + '_ {
    let ReplicaSet {
        generation,
        replicas,
        selector,
        template_labels,
        ..
    } = set;
    (generation, replicas, selector, template_labels)
}

fn share_texts(object: &mut ReplicaSet) {
    if let Ok(selector) = &mut object.selector {
        selector.share(&object.template_labels);
    }
    if let Some(owner) = &mut object.controller {
        owner.share();
    }
}
