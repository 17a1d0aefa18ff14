//! The objects, their versions, and the indices that avoid scans.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Object, kind::Kind, object};

/// The namespace and name of an object. Sorts by namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey(String);

/// All objects by kind and key. Every write of any kind takes the next version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    version: u64,
    shelves: [BTreeMap<ObjectKey, Object>; 5],
    by_uid: BTreeMap<String, (Kind, ObjectKey)>,
    /// Pods and ReplicaSets by the uid of each of their owners.
    dependents: BTreeMap<String, BTreeSet<(Kind, ObjectKey)>>,
    /// Pods by their node; unassigned pods under the empty name.
    by_node: BTreeMap<String, BTreeSet<ObjectKey>>,
    /// Pods that have not ended, by namespace.
    unended_pods: BTreeMap<String, usize>,
}

impl ObjectKey {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self(format!("{namespace}\0{name}"))
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(object::namespace(object), object::name(object))
    }

    pub(crate) fn namespace(&self) -> &str {
        let parts = self.0.split_once('\0');
        parts.map_or("", |(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('\0').map_or("", |(_, name)| name)
    }
}

impl Store {
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn find(&self, kind: Kind, key: &ObjectKey) -> Option<&Object> {
        self.shelves[kind.index()].get(key)
    }

    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.shelves[kind.index()].values()
    }

    pub(crate) fn in_namespace(
        &self,
        kind: Kind,
        namespace: &str,
    ) -> impl Iterator<Item = &Object> {
        let from = ObjectKey::new(namespace, "");
        let to = ObjectKey(format!("{namespace}\u{1}"));
        let objects = self.shelves[kind.index()].range(from..to);
        objects.map(|(_, object)| object)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Object> {
        let (kind, key) = self.place_of(uid)?;
        self.find(*kind, key)
    }

    /// The kind and the key of the object with this UID.
    pub(crate) fn place_of(&self, uid: &str) -> Option<&(Kind, ObjectKey)> {
        self.by_uid.get(uid)
    }

    /// The objects with this UID among their owners, pods first.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(Kind, ObjectKey)> {
        let dependents = self.dependents.get(uid).into_iter().flatten();
        dependents.cloned().collect()
    }

    pub(crate) fn pods_on(&self, node: &str) -> Vec<Object> {
        let keys = self.by_node.get(node).into_iter().flatten();
        let pods = keys.filter_map(|key| self.find(Kind::Pod, key));
        pods.cloned().collect()
    }

    pub(crate) fn count_on(&self, node: &str) -> usize {
        self.by_node.get(node).map_or(0, BTreeSet::len)
    }

    pub(crate) fn count_unended_pods(&self, namespace: &str) -> usize {
        self.unended_pods.get(namespace).copied().unwrap_or(0)
    }

    /// Stores a new state under the next version.
    pub(crate) fn put(&mut self, kind: Kind, mut object: Value) -> Object {
        self.stamp(&mut object);
        let (key, object) = (ObjectKey::of(&object), Object::new(object));
        let old = self.shelves[kind.index()].insert(key.clone(), object.clone());
        if let Some(old) = old {
            self.unlink(kind, &key, &old);
        }
        self.link(kind, &key, &object);
        object
    }

    /// Removes an object; its last state takes the next version too.
    pub(crate) fn remove(&mut self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        let old = self.shelves[kind.index()].remove(key)?;
        self.unlink(kind, key, &old);
        let mut last = Value::clone(&old);
        self.stamp(&mut last);
        Some(Object::new(last))
    }

    fn stamp(&mut self, object: &mut Value) {
        self.version += 1;
        let version = self.version.to_string().into();
        object::metadata(object).insert("resourceVersion".to_owned(), version);
    }

    fn link(&mut self, kind: Kind, key: &ObjectKey, object: &Value) {
        let entry = (kind, key.clone());
        for owner in object::owners(object) {
            let dependents = self.dependents.entry(owner.uid.to_owned());
            dependents.or_default().insert(entry.clone());
        }
        self.by_uid.insert(object::uid(object).to_owned(), entry);
        if kind == Kind::Pod {
            let on_node = self.by_node.entry(object::node(object).to_owned());
            on_node.or_default().insert(key.clone());
            if !object::has_ended(object) {
                let unended = self.unended_pods.entry(key.namespace().to_owned());
                *unended.or_default() += 1;
            }
        }
    }

    fn unlink(&mut self, kind: Kind, key: &ObjectKey, object: &Value) {
        let entry = (kind, key.clone());
        for owner in object::owners(object) {
            remove_from(&mut self.dependents, owner.uid, &entry);
        }
        self.by_uid.remove(object::uid(object));
        if kind == Kind::Pod {
            remove_from(&mut self.by_node, object::node(object), key);
            if !object::has_ended(object)
                && let Some(unended) = self.unended_pods.get_mut(key.namespace())
            {
                *unended -= 1;
            }
        }
    }
}

fn remove_from<T: Ord>(index: &mut BTreeMap<String, BTreeSet<T>>, key: &str, entry: &T) {
    if let Some(set) = index.get_mut(key) {
        set.remove(entry);
        if set.is_empty() {
            index.remove(key);
        }
    }
}
