//! The shard of an object, by its namespace.

use std::{collections::BTreeMap, num::NonZeroU16};

use crate::{
    api::InvalidObject,
    packed_pods::PackedPods,
    shard::Shard,
    watch::{Items, List, WatchEvent},
};

/// Splits objects by shards. Objects of a namespace often follow each other, so the last answer is kept.
#[derive(Debug)]
pub(super) struct Splitter {
    shards: NonZeroU16,
    last: Option<(String, u16)>,
}

// === impl Splitter ===

impl Splitter {
    pub(super) const fn new(shards: NonZeroU16) -> Self {
        Self { shards, last: None }
    }

    /// Splits a page among the `wanted` shards. An object whose namespace cannot be read concerns all of them.
    pub(super) fn list(
        &mut self,
        page: List,
        wanted: impl Iterator<Item = u16>,
    ) -> BTreeMap<u16, List> {
        let List {
            part,
            items,
            invalid,
            resource_version,
        } = page;
        let share = |items| List {
            part,
            items,
            invalid: Vec::new(),
            resource_version: resource_version.clone(),
        };
        let mut shares: BTreeMap<_, _>;
        match items {
            Items::Pods(pods) => {
                let empty = || share(Items::Pods(PackedPods::new()));
                shares = wanted.map(|shard| (shard, empty())).collect();
                for pod in pods.into_pods() {
                    let share = shares.get_mut(&self.shard_of(&pod.namespace));
                    if let Some(Items::Pods(pods)) = share.map(|list| &mut list.items) {
                        pods.push(&pod);
                    }
                }
            }
            Items::ReplicaSets(sets) => {
                let empty = || share(Items::ReplicaSets(Vec::new()));
                shares = wanted.map(|shard| (shard, empty())).collect();
                for set in sets {
                    let share = shares.get_mut(&self.shard_of(&set.projected.namespace));
                    if let Some(Items::ReplicaSets(sets)) = share.map(|list| &mut list.items) {
                        sets.push(set);
                    }
                }
            }
        }
        for object in invalid {
            let owner = namespace_of(&object).map(|namespace| self.shard_of(namespace));
            for (shard, share) in &mut shares {
                if owner.is_none_or(|owner| owner == *shard) {
                    share.invalid.push(object.clone());
                }
            }
        }
        shares
    }

    /// The shard of an event; `None` if the event concerns all shards.
    pub(super) fn owner(&mut self, event: &WatchEvent) -> Option<u16> {
        let namespace = match event {
            WatchEvent::Applied(object)
            | WatchEvent::MadeByOther { object, .. }
            | WatchEvent::Deleted(object) => object.namespace(),
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

/// The namespace of an unreadable object, if the namespace itself can be read.
fn namespace_of(object: &InvalidObject) -> Option<&str> {
    let (_, name) = object.object.split_once(' ')?;
    let (namespace, _) = name.split_once('/')?;
    (namespace != "?").then_some(namespace)
}
