//! What the agent itself knows of its cluster: enough to check an operation just before it starts, and no more.

use decree::v1;

use crate::{
    api::{Kind, ReplicaSet, parse_version},
    packed_pods::PackedPods,
    pods::Pods,
    resume::{Extent, Resume},
    template::Templates,
};

/// The ReplicaSets, the pods, and the newest writes. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The ReplicaSets and their templates.
    pub templates: Templates,
    /// The pods.
    pub(crate) pods: Pods,
    own_writes: [Option<u64>; 2],
    seen: [Option<u64>; 2],
    resumes: Vec<Resume>,
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
    pub fn replace_pods(&mut self, pods: &PackedPods) {
        self.pods.replace(pods.len(), pods.iter());
    }

    /// Takes a pod's state; an older one changes nothing.
    pub fn apply_pod(&mut self, pod: &v1::Pod) {
        self.pods.apply(pod);
    }

    /// Forgets a pod that is gone.
    pub fn delete_pod(&mut self, uid: &str) {
        self.pods.delete(uid);
    }

    /// Takes a ReplicaSet's state; an older one changes nothing.
    pub fn apply_replica_set(&mut self, replica_set: &ReplicaSet) {
        if self.templates.apply(replica_set) {
            let set = &replica_set.projected;
            self.resumes.push(Resume {
                replica_set: v1::ObjectRef {
                    namespace: set.namespace.clone(),
                    name: set.name.clone(),
                    uid: set.uid.clone(),
                },
                extent: Extent::of_annotation(&replica_set.resume),
            });
        }
    }

    /// Returns what people have resumed since this was asked last.
    pub(crate) fn take_resumes(&mut self) -> Vec<Resume> {
        std::mem::take(&mut self.resumes)
    }

    /// Forgets a ReplicaSet that is gone.
    pub fn delete_replica_set(&mut self, uid: &str) {
        self.templates.delete(uid);
        self.pods.reset_peak(uid);
    }

    /// Forgets all ReplicaSets but those for which `keep` holds.
    pub fn retain_replica_sets(&mut self, keep: impl Fn(&str) -> bool) {
        self.templates.retain(&keep);
        self.pods.retain_peaks(keep);
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
