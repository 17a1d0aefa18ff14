//! The cluster's own controllers: who is woken by a change, the garbage collector, and the end of a namespace.

use serde_json::{Value, json};

use crate::{
    Cluster, Object,
    delete::{FOREGROUND, ORPHAN},
    kind::Kind,
    object,
    store::Place,
    timeline::Task,
};

// === impl Cluster: who is woken ===

impl Cluster {
    pub(crate) fn run(&mut self, task: Task) {
        match task {
            Task::Bind(pod) => self.bind(&pod),
            Task::Start(pod) => self.start(&pod),
            Task::Ready(pod) => self.become_ready(&pod),
            Task::Stop(pod) => self.stop(&pod),
            Task::Collect(kind, place) => self.collect(kind, &place),
            Task::Propagate(kind, place) => self.propagate(kind, &place),
            Task::Empty(namespace) => self.empty(&namespace),
            Task::LoseNode {
                node,
                outage,
                stage,
            } => self.lose_node(&node, outage, stage),
        }
    }

    pub(crate) fn added(&mut self, kind: Kind, object: &Object) {
        match kind {
            Kind::Pod => self.attend(object),
            Kind::Node => self.node_added(object::name(object)),
            Kind::ReplicaSet | Kind::Namespace | Kind::ResourceQuota => {}
        }
        self.count(kind, object);
        self.owners_changed(kind, object);
        if object::is_deleting(object) {
            self.asked_to_go(kind, object);
        }
    }

    pub(crate) fn changed(&mut self, kind: Kind, old: &Object, new: &Object) {
        let asked = object::is_deleting(new) && !object::is_deleting(old);
        let moved =
            object::phase(old) != object::phase(new) || object::node(old) != object::node(new);
        if kind == Kind::Pod && (asked || moved) {
            self.attend(new);
        }
        if asked {
            self.asked_to_go(kind, new);
        }
        if old["metadata"]["ownerReferences"] != new["metadata"]["ownerReferences"] {
            self.owners_changed(kind, new);
            self.freed(old);
        }
        if object::has_ended(old) != object::has_ended(new) || kind == Kind::ResourceQuota {
            self.count(kind, new);
        }
    }

    pub(crate) fn removed(&mut self, kind: Kind, last: &Object) {
        match kind {
            Kind::Node => self.node_removed(object::name(last)),
            Kind::Pod if self.config.pods_per_node_max.is_some() => self.wake_unassigned(),
            Kind::Pod | Kind::ReplicaSet | Kind::Namespace | Kind::ResourceQuota => {}
        }
        self.count(kind, last);
        self.freed(last);
        for (kind, place) in self.store.dependents(object::uid(last)) {
            self.timeline
                .after(self.config.collect_after, Task::Collect(kind, place));
        }
        let namespace = object::namespace(last);
        if self.is_terminating(namespace) {
            self.timeline.after(
                self.config.empty_namespace_after,
                Task::Empty(namespace.to_owned()),
            );
        }
    }

    fn asked_to_go(&mut self, kind: Kind, object: &Object) {
        if kind == Kind::Namespace {
            let name = object::name(object).to_owned();
            self.timeline
                .after(self.config.empty_namespace_after, Task::Empty(name));
        }
        if has_dependents_to_see_to(object) {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(kind, Place::of(object)),
            );
        }
    }

    /// Looks after an object that has new owners: one may be gone, or going.
    fn owners_changed(&mut self, kind: Kind, object: &Object) {
        let (mut dangling, mut going) = (false, Vec::new());
        for owner in object::owners(object) {
            match self.store.by_uid(owner.uid) {
                None => dangling |= is_modelled(owner.kind),
                Some(it) if has_dependents_to_see_to(it) => going.push(Place::of(it)),
                Some(_) => {}
            }
        }
        if dangling {
            self.timeline.after(
                self.config.collect_after,
                Task::Collect(kind, Place::of(object)),
            );
        }
        for place in going {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(Kind::ReplicaSet, place),
            );
        }
    }

    /// Looks after the owners that an object had: they may wait for it.
    fn freed(&mut self, object: &Object) {
        let owners = object::owners(object).filter_map(|owner| self.store.by_uid(owner.uid));
        let going = owners.filter(|owner| has_dependents_to_see_to(owner));
        let going: Vec<_> = going.map(|owner| Place::of(owner)).collect();
        for place in going {
            self.timeline.after(
                self.config.collect_after,
                Task::Propagate(Kind::ReplicaSet, place),
            );
        }
    }

    fn count(&mut self, kind: Kind, object: &Object) {
        let counted = matches!(kind, Kind::Pod | Kind::ReplicaSet | Kind::ResourceQuota);
        if counted && self.has_quota(object::namespace(object)) {
            self.refresh_quotas(object::namespace(object));
        }
    }
}

// === impl Cluster: the garbage collector ===

impl Cluster {
    /// Deletes an object whose owners are all gone; with some left, takes the others off it.
    fn collect(&mut self, kind: Kind, place: &Place) {
        let Some(object) = self.store.find(kind, place).cloned() else {
            return;
        };
        let is_gone = |uid: &str, kind: &str| is_modelled(kind) && self.store.by_uid(uid).is_none();
        let gone = object::owners(&object).filter(|owner| is_gone(owner.uid, owner.kind));
        let gone: Vec<_> = gone.map(|owner| owner.uid.to_owned()).collect();
        if gone.is_empty() {
            return;
        }
        if gone.len() == object::owners(&object).count() {
            self.delete_quietly(kind, place);
        } else {
            self.disown(kind, &object, &gone);
        }
    }

    /// Sees to the dependents of an owner that waits for them, and lets it go when none holds it.
    fn propagate(&mut self, kind: Kind, place: &Place) {
        let Some(owner) = self
            .store
            .find(kind, place)
            .filter(|it| object::is_deleting(it))
            .cloned()
        else {
            return;
        };
        let uid = object::uid(&owner).to_owned();
        let orphans = object::has_finalizer(&owner, ORPHAN);
        if !orphans && !object::has_finalizer(&owner, FOREGROUND) {
            return;
        }
        for (kind, place) in self.store.dependents(&uid) {
            let Some(dependent) = self.store.find(kind, &place).cloned() else {
                continue;
            };
            if orphans || self.has_other_owner(&dependent, &uid) {
                self.disown(kind, &dependent, std::slice::from_ref(&uid));
            } else if !object::is_deleting(&dependent) {
                self.delete_quietly(kind, &place);
            }
        }
        if orphans || !self.is_blocked(&uid) {
            let finalizer = if orphans { ORPHAN } else { FOREGROUND };
            let mut freed = Value::clone(&owner);
            object::strip(&mut freed, "finalizers", |it| it == finalizer);
            self.store_update(kind, &owner, freed);
        }
    }

    fn disown(&mut self, kind: Kind, object: &Object, owners: &[String]) {
        let mut freed = Value::clone(object);
        object::strip(&mut freed, "ownerReferences", |entry| {
            entry["uid"]
                .as_str()
                .is_some_and(|uid| owners.iter().any(|it| it == uid))
        });
        self.change(kind, object, freed);
    }

    fn is_blocked(&self, owner: &str) -> bool {
        let dependents = self.store.dependents(owner);
        dependents.iter().any(|(kind, place)| {
            let dependent = self.store.find(*kind, place);
            dependent.is_some_and(|it| {
                object::owners(it).any(|entry| entry.uid == owner && entry.blocks)
            })
        })
    }

    fn has_other_owner(&self, object: &Value, than: &str) -> bool {
        let mut others = object::owners(object).filter(|owner| owner.uid != than);
        others.any(|owner| {
            let known = self.store.by_uid(owner.uid);
            match known {
                Some(it) => !object::is_deleting(it),
                None => !is_modelled(owner.kind),
            }
        })
    }
}

// === impl Cluster: the end of a namespace ===

impl Cluster {
    fn is_terminating(&self, namespace: &str) -> bool {
        let namespace = self.store.find(Kind::Namespace, &Place::new("", namespace));
        namespace.is_some_and(|it| object::is_deleting(it))
    }

    fn empty(&mut self, namespace: &str) {
        if !self.is_terminating(namespace) {
            return;
        }
        for kind in [Kind::ReplicaSet, Kind::Pod, Kind::ResourceQuota] {
            let contents = self.store.in_namespace(kind, namespace);
            let going: Vec<_> = contents
                .filter(|it| !object::is_deleting(it))
                .map(|it| Place::of(it))
                .collect();
            for place in going {
                self.delete_quietly(kind, &place);
            }
        }
        let place = Place::new("", namespace);
        let kinds = [Kind::ReplicaSet, Kind::Pod, Kind::ResourceQuota];
        let is_empty = kinds
            .iter()
            .all(|kind| self.store.in_namespace(*kind, namespace).next().is_none());
        if let Some(last) = self
            .store
            .find(Kind::Namespace, &place)
            .filter(|_| is_empty)
            .cloned()
        {
            let mut finalized = Value::clone(&last);
            object::fields(&mut finalized, "spec").insert("finalizers".to_owned(), json!([]));
            self.remove_as(Kind::Namespace, finalized);
        }
    }
}

/// Returns whether an owner is being deleted and its dependents come first.
fn has_dependents_to_see_to(owner: &Value) -> bool {
    let waits = object::has_finalizer(owner, FOREGROUND) || object::has_finalizer(owner, ORPHAN);
    waits && object::is_deleting(owner)
}

/// Returns whether an owner of this kind would be known here. Of others, such as Deployments, it is taken that they are there.
fn is_modelled(kind: &str) -> bool {
    matches!(kind, "Pod" | "ReplicaSet")
}
