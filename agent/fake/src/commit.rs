//! The only ways into the store: each change is stored, told to the watches, and wakes whom it concerns.

use serde_json::{Value, json};

use crate::{
    Cluster, Object,
    error::ApiError,
    kind::Kind,
    store::Place,
    watch::{EventKind, WatchEvent},
};

impl Cluster {
    pub(crate) fn found(&self, kind: Kind, place: &Place) -> Result<Object, ApiError> {
        let object = self.store.find(kind, place).cloned();
        object.ok_or_else(|| ApiError::not_found(kind, place.name()))
    }

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

    pub(crate) fn install(&mut self, kind: Kind, name: &str) {
        let object = json!({"kind": kind.name(), "metadata": {"name": name}});
        let installed = self.admit(kind, object);
        debug_assert!(installed.is_ok(), "{kind} {name} is refused: {installed:?}");
    }
}
