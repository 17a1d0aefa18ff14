//! The part of a cluster that an agent acts for.

use std::{collections::BTreeSet, time::Duration};

use agent_core::{
    lease::Lease,
    watch::{Items, List, WatchEvent},
};
use decree::v1;
use jiff::Timestamp;

/// Some namespaces, and the Leases of an agent for them.
#[derive(Clone, Debug)]
pub struct Part {
    /// The namespaces.
    pub namespaces: BTreeSet<String>,
    /// The Leases that must be valid; `None` if the agent has given one back.
    pub leases: Option<Vec<Lease>>,
}

// === impl Part ===

impl Part {
    /// Returns the time that the Leases leave for a create; `None` if they have expired.
    #[must_use]
    pub fn create_time(&self, now: Timestamp) -> Option<Duration> {
        let mut time = Duration::MAX;
        for lease in self.leases.as_ref()? {
            let left = lease.lead(now)?.creates_until.duration_since(now);
            time = time.min(Duration::try_from(left).unwrap_or_default());
        }
        Some(time)
    }

    /// Removes objects of other namespaces.
    pub(crate) fn own_list(&self, mut list: List) -> List {
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

    /// Reduces an event about an object in another namespace to its version.
    pub(crate) fn own_event(&self, event: WatchEvent) -> WatchEvent {
        let (WatchEvent::Applied(object)
        | WatchEvent::MadeByOther { object, .. }
        | WatchEvent::Deleted(object)) = &event
        else {
            return event;
        };
        if self.namespaces.contains(object.namespace()) {
            event
        } else {
            WatchEvent::Elsewhere(object.resource_version().to_owned())
        }
    }
}
