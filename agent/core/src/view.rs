//! What the agent itself knows of its cluster: enough to check an operation just before it starts, and no more.

use std::{collections::HashMap, sync::Arc};

use decree::v1;

use crate::{
    api::{Kind, ReplicaSet, parse_version},
    template::Templates,
};

/// The ReplicaSets, the owners of the pods, and the newest writes. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The ReplicaSets and their templates.
    pub templates: Templates,
    owners: HashMap<String, Owner>,
    /// The controller met last: most pods that come together have the same, and share the text.
    controller_last: Arc<str>,
    own_writes: [Option<u64>; 2],
    seen: [Option<u64>; 2],
}

/// Who controls a pod, as far as the agent knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership<'a> {
    /// The agent does not know the pod.
    Unknown,
    /// No one.
    Orphan,
    /// The object of this uid.
    Controlled(&'a str),
}

#[derive(Clone, Debug)]
struct Owner {
    /// The uid of the controller; empty for orphans.
    controller: Arc<str>,
    version: Option<u64>,
}

// === impl View ===

impl View {
    /// Returns an empty view of a cluster whose ReplicaSets are of this group and version.
    #[must_use]
    pub fn new(api_version: impl Into<String>) -> Self {
        Self {
            templates: Templates::new(api_version),
            ..Self::default()
        }
    }

    /// Replaces the pods by a list.
    pub fn replace_pods(&mut self, pods: &[v1::Pod]) {
        self.owners.clear();
        for pod in pods {
            self.apply_pod(pod);
        }
    }

    /// Takes a pod's state; an older one changes nothing.
    pub fn apply_pod(&mut self, pod: &v1::Pod) {
        let version = parse_version(&pod.resource_version);
        let controller = pod
            .controller
            .as_ref()
            .map_or("", |owner| owner.uid.as_str());
        if *self.controller_last != *controller {
            self.controller_last = controller.into();
        }
        let controller = Arc::clone(&self.controller_last);
        match self.owners.get_mut(&pod.uid) {
            Some(known) if version.is_some() && version < known.version => {}
            Some(known) => {
                *known = Owner {
                    controller,
                    version,
                }
            }
            None => {
                self.owners.insert(
                    pod.uid.clone(),
                    Owner {
                        controller,
                        version,
                    },
                );
            }
        }
    }

    /// Forgets a pod that is gone.
    pub fn delete_pod(&mut self, uid: &str) {
        self.owners.remove(uid);
    }

    /// Takes a ReplicaSet's state; an older one changes nothing.
    pub fn apply_replica_set(&mut self, replica_set: &ReplicaSet) {
        self.templates.apply(replica_set);
    }

    /// Returns who controls a pod.
    #[must_use]
    pub fn ownership(&self, pod_uid: &str) -> Ownership<'_> {
        match self.owners.get(pod_uid) {
            None => Ownership::Unknown,
            Some(owner) if owner.controller.is_empty() => Ownership::Orphan,
            Some(owner) => Ownership::Controlled(&owner.controller),
        }
    }

    /// Notes the version up to which lists and watches have shown a kind.
    pub const fn note_seen(&mut self, kind: Kind, version: Option<u64>) {
        self.seen[kind as usize] = version;
    }

    /// Takes a pod from the answer to a call, unless the watch is past it: what the watch shows as gone stays gone.
    pub(crate) fn absorb_pod(&mut self, pod: &v1::Pod) {
        if self.is_ahead(Kind::Pod, &pod.resource_version) {
            self.apply_pod(pod);
        }
    }

    /// Takes a ReplicaSet from the answer to a call, unless the watch is past it.
    pub(crate) fn absorb_replica_set(&mut self, replica_set: &ReplicaSet) {
        if self.is_ahead(Kind::ReplicaSet, &replica_set.projected.resource_version) {
            self.apply_replica_set(replica_set);
        }
    }

    /// Notes the version of a write of this agent: a list that is older must not be used.
    pub fn note_write(&mut self, kind: Kind, version: &str) {
        let newest = &mut self.own_writes[kind as usize];
        *newest = (*newest).max(parse_version(version));
    }

    /// Returns the version of the newest write of this agent.
    #[must_use]
    pub const fn own_write(&self, kind: Kind) -> Option<u64> {
        self.own_writes[kind as usize]
    }

    fn is_ahead(&self, kind: Kind, version: &str) -> bool {
        parse_version(version).is_some_and(|version| Some(version) > self.seen[kind as usize])
    }
}
