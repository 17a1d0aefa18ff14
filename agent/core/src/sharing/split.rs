//! The shard of an object, by its namespace.

use std::{collections::BTreeMap, num::NonZeroU16};

use crate::{
    api::InvalidObject,
    packed_pods::PackedPods,
    shard::Shard,
    watch::{Items, List, WatchEvent},
};

/// Splits a page among the `wanted` of all `shards`. An object whose namespace cannot be read concerns all of them.
pub(super) fn list(
    page: List,
    shards: NonZeroU16,
    wanted: impl Iterator<Item = u16>,
) -> BTreeMap<u16, List> {
    let List {
        part,
        items,
        invalid,
        resource_version,
    } = page;
    let empty = List {
        part,
        items: match items {
            Items::Pods(_) => Items::Pods(PackedPods::default()),
            Items::ReplicaSets(_) => Items::ReplicaSets(Vec::new()),
        },
        invalid: Vec::new(),
        resource_version,
    };
    let mut shares: BTreeMap<_, _> = wanted.map(|shard| (shard, empty.clone())).collect();
    match items {
        Items::Pods(pods) => {
            for pod in pods.into_pods() {
                let share = shares.get_mut(&shard_of(&pod.namespace, shards));
                if let Some(Items::Pods(pods)) = share.map(|list| &mut list.items) {
                    pods.push(&pod);
                }
            }
        }
        Items::ReplicaSets(sets) => {
            for set in sets {
                let share = shares.get_mut(&shard_of(&set.projected.namespace, shards));
                if let Some(Items::ReplicaSets(sets)) = share.map(|list| &mut list.items) {
                    sets.push(set);
                }
            }
        }
    }
    for object in invalid {
        let owner = namespace_of(&object).map(|namespace| shard_of(namespace, shards));
        for (shard, share) in &mut shares {
            if owner.is_none_or(|owner| owner == *shard) {
                share.invalid.push(object.clone());
            }
        }
    }
    shares
}

/// The shard of an event; `None` if the event concerns all shards.
pub(super) fn owner(event: &WatchEvent, shards: NonZeroU16) -> Option<u16> {
    let namespace = match event {
        WatchEvent::Applied(object)
        | WatchEvent::MadeByOther { object, .. }
        | WatchEvent::Deleted(object) => object.namespace(),
        WatchEvent::Invalid { error, .. } => namespace_of(error)?,
        WatchEvent::Bookmark(_) | WatchEvent::Elsewhere(_) | WatchEvent::Error(_) => return None,
    };
    Some(shard_of(namespace, shards))
}

fn shard_of(namespace: &str, shards: NonZeroU16) -> u16 {
    Shard::of_namespace(namespace, shards).index()
}

/// The namespace of an unreadable object, if the namespace itself can be read.
fn namespace_of(object: &InvalidObject) -> Option<&str> {
    let (_, name) = object.object.split_once(' ')?;
    let (namespace, _) = name.split_once('/')?;
    (namespace != "?").then_some(namespace)
}
