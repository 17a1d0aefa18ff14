//! The cluster's own controllers: what each does when its task is due, the garbage collector, and the end of a namespace.

use serde_json::{Value, json};

use crate::{
    kind::Kind,
    object::{self, FOREGROUND, ORPHAN, Object},
    state::State,
    store::Place,
    timeline::Task,
    wake::is_modelled,
};

// === impl State: tasks ===

impl State {
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
}

// === impl State: the garbage collector ===

impl State {
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

// === impl State: the end of a namespace ===

impl State {
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
