//! The shard of an object, by its namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
};

use crate::{
    api::{InvalidObject, Kind, Object},
    packed_pods::PackedPods,
    shard::Shard,
    watch::{Items, List, Part, WatchEvent},
};

/// Splits the objects of one kind by shards. Objects of a namespace often follow each other, so the last answer is kept.
#[derive(Debug)]
pub(super) struct Splitter {
    kind: Kind,
    shards: NonZeroU16,
    last: Option<(String, u16)>,
}

// === impl Splitter ===

impl Splitter {
    pub(super) const fn new(kind: Kind, shards: NonZeroU16) -> Self {
        Self {
            kind,
            shards,
            last: None,
        }
    }

    pub(super) fn empty(&self, part: Part, version: &str) -> List {
        empty(self.kind, part, version)
    }

    /// Splits a page among the `wanted` shards; a shard without objects gets no page. An object whose namespace cannot be read concerns all
    /// of them.
    pub(super) fn list(&mut self, page: List, wanted: &BTreeSet<u16>) -> BTreeMap<u16, List> {
        let List {
            part,
            items,
            invalid,
            resource_version,
        } = page;
        let kind = self.kind;
        let mut shares = BTreeMap::new();
        let mut share = |shard, take: &mut dyn FnMut(&mut List)| {
            if wanted.contains(&shard) {
                let share = shares.entry(shard);
                take(share.or_insert_with(|| empty(kind, part, &resource_version)));
            }
        };
        match items {
            Items::Pods(pods) => {
                for pod in pods.into_pods() {
                    share(self.shard_of(&pod.namespace), &mut |list| {
                        if let Items::Pods(pods) = &mut list.items {
                            pods.push(&pod);
                        }
                    });
                }
            }
            Items::ReplicaSets(sets) => {
                for set in sets {
                    let shard = self.shard_of(&set.projected.namespace);
                    let mut set = Some(set);
                    share(shard, &mut |list| {
                        if let Items::ReplicaSets(sets) = &mut list.items {
                            sets.extend(set.take());
                        }
                    });
                }
            }
        }
        for object in invalid {
            let owner = namespace_of(&object).map(|namespace| self.shard_of(namespace));
            let concerned = wanted
                .iter()
                .filter(|it| owner.is_none_or(|owner| owner == **it));
            for shard in concerned {
                share(*shard, &mut |list| list.invalid.push(object.clone()));
            }
        }
        shares
    }

    /// The shard of an event; `None` if the event concerns all shards.
    pub(super) fn owner(&mut self, event: &WatchEvent) -> Option<u16> {
        let namespace = match event {
            WatchEvent::Applied(object)
            | WatchEvent::MadeByOther { object, .. }
            | WatchEvent::Deleted(object) => match object {
                Object::Pod(pod) => &pod.namespace,
                Object::ReplicaSet(set) => &set.projected.namespace,
            },
            WatchEvent::Invalid { error, .. } => namespace_of(error)?,
            WatchEvent::Bookmark(_) | WatchEvent::Elsewhere(_) | WatchEvent::Error(_) => {
                return None;
            }
        };
        Some(self.shard_of(namespace))
    }

    fn shard_of(&mut self, namespace: &str) -> u16 {
        if let Some((last, shard)) = &self.last
            && last == namespace
        {
            return *shard;
        }
        let shard = Shard::of_namespace(namespace, self.shards).index();
        self.last = Some((namespace.to_owned(), shard));
        shard
    }
}

fn empty(kind: Kind, part: Part, version: &str) -> List {
    List {
        part,
        items: match kind {
            Kind::Pod => Items::Pods(PackedPods::new()),
            Kind::ReplicaSet => Items::ReplicaSets(Vec::new()),
        },
        invalid: Vec::new(),
        resource_version: version.to_owned(),
    }
}

/// The namespace of an unreadable object, if the namespace itself can be read.
fn namespace_of(object: &InvalidObject) -> Option<&str> {
    let (_, name) = object.object.split_once(' ')?;
    let (namespace, _) = name.split_once('/')?;
    (namespace != "?").then_some(namespace)
}
