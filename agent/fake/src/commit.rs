//! The only ways into the store: each change is stored, published to the watches, and followed by what it sets off at once.
//!
//! What follows at once is in this file because it changes the store in turn: quotas count, a node that is new is ready, and one
//! that is gone takes its pods along. All else is for the timeline (`wake`).

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    kind::Kind,
    object::{self, Condition, Object, set_condition},
    quota,
    state::{NodeState, State},
    store::Place,
    watch::{EventKind, WatchEvent},
};

// === impl State: changes ===

impl State {
    /// Stores a new object and wakes whom it concerns.
    pub(crate) fn add(&mut self, kind: Kind, object: Value) -> Object {
        self.obey_faults();
        let object = self.store.put(kind, object);
        self.publish(kind, EventKind::Added, &object);
        self.added(kind, &object);
        object
    }

    /// Stores a change and wakes whom it concerns; a change of nothing keeps the version.
    pub(crate) fn change(&mut self, kind: Kind, old: &Object, new: Value) -> Object {
        if **old == new {
            return old.clone();
        }
        self.obey_faults();
        let object = self.store.put(kind, new);
        self.publish(kind, EventKind::Modified, &object);
        self.changed(kind, old, &object);
        object
    }

    /// Removes an object and wakes whom it concerns.
    pub(crate) fn remove(&mut self, kind: Kind, object: &Object) -> Object {
        self.obey_faults();
        let Some(last) = self.store.remove(kind, &Place::of(object)) else {
            return object.clone();
        };
        self.publish(kind, EventKind::Deleted, &last);
        self.removed(kind, &last);
        last
    }

    /// Removes an object whose last state is `last`.
    pub(crate) fn remove_as(&mut self, kind: Kind, last: Value) -> Object {
        self.obey_faults();
        let last = self.store.put(kind, last);
        self.remove(kind, &last)
    }

    fn publish(&mut self, kind: Kind, event: EventKind, object: &Object) {
        let event = WatchEvent {
            kind: event,
            object: object.clone(),
        };
        self.watches.record(kind, self.timeline.now(), event);
    }

    /// Ends the grace of a pod: it goes at once, or as soon as its finalizers let it.
    pub(crate) fn end_grace(&mut self, pod: &Object) -> Object {
        let mut ended = Value::clone(pod);
        object::mark_deleting(&mut ended, self.now(), Duration::ZERO);
        object::metadata(&mut ended).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
        if object::finalizers(&ended).next().is_none() {
            return self.remove(Kind::Pod, pod);
        }
        self.change(Kind::Pod, pod, ended)
    }

    pub(crate) fn mark_node(&mut self, name: &str, status: &str, reason: &str, message: &str) {
        if let Some(node) = self.store.find(Kind::Node, &Place::new("", name)).cloned() {
            let mut new = Value::clone(&node);
            let condition = Condition {
                status,
                reason,
                message,
            };
            set_condition(&mut new, self.now(), "Ready", condition);
            self.change(Kind::Node, &node, new);
        }
    }
}

// === impl State: what follows at once ===

impl State {
    fn added(&mut self, kind: Kind, object: &Object) {
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

    fn changed(&mut self, kind: Kind, old: &Object, new: &Object) {
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

    fn removed(&mut self, kind: Kind, last: &Object) {
        match kind {
            Kind::Node => self.node_removed(object::name(last)),
            Kind::Pod if self.config.pods_per_node_max.is_some() => self.wake_unassigned(),
            Kind::Pod | Kind::ReplicaSet | Kind::Namespace | Kind::ResourceQuota => {}
        }
        self.count(kind, last);
        self.freed(last);
        self.left_behind(last);
    }

    /// Writes what is used into the quotas of the object's namespace.
    fn count(&mut self, kind: Kind, object: &Object) {
        let counted = matches!(kind, Kind::Pod | Kind::ReplicaSet | Kind::ResourceQuota);
        if counted {
            for (quota, new) in quota::refreshed(&self.store, object::namespace(object)) {
                self.change(Kind::ResourceQuota, &quota, new);
            }
        }
    }

    fn node_added(&mut self, name: &str) {
        self.nodes.insert(name.to_owned(), NodeState::default());
        self.mark_node(
            name,
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        );
        self.wake_unassigned();
    }

    /// Takes the pods of a node that is gone along, as the pod collector does.
    fn node_removed(&mut self, name: &str) {
        self.nodes.remove(name);
        for pod in self.pods_on(name) {
            self.end_grace(&pod);
        }
    }
}
