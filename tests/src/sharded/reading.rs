//! What an agent reads of the cluster: what is in the namespaces of its shard.

use agent_core::{
    api::Object,
    watch::{Items, List, WatchEvent},
};
use decree::v1;

use super::state::Served;

impl Served {
    /// Leaves out what is in namespaces of other shards.
    pub(super) fn own_list(&self, mut list: List) -> List {
        match &mut list.items {
            Items::Pods(pods) => {
                let own = |pod: &v1::Pod| self.namespaces.contains(&pod.namespace);
                *pods = std::mem::take(pods).into_pods().filter(own).collect();
            }
            Items::ReplicaSets(sets) => {
                sets.retain(|set| self.namespaces.contains(&set.projected.namespace));
            }
        }
        list
    }

    /// Leaves of an event about another shard's object the version.
    pub(super) fn own_event(&self, event: WatchEvent) -> WatchEvent {
        let (WatchEvent::Applied(object)
        | WatchEvent::MadeByOther { object, .. }
        | WatchEvent::Deleted(object)) = &event
        else {
            return event;
        };
        let namespace = match object {
            Object::Pod(pod) => &pod.namespace,
            Object::ReplicaSet(set) => &set.projected.namespace,
        };
        match self.namespaces.contains(namespace) {
            true => event,
            false => WatchEvent::Elsewhere(object.resource_version().to_owned()),
        }
    }
}
