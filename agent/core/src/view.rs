//! The agent's knowledge of its cluster: enough to check an operation just before it starts, and no more.

use std::collections::HashSet;

use decree_api::v1;

use self::{pods::Pods, template::Templates};
use crate::{
    api::{Answer, Kind, ReplicaSet, Reply, object_ref, parse_version},
    budget::resume::Extent,
    watch::Part,
};

/// The ReplicaSets, the pods, and the newest writes. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) templates: Templates,
    pub(crate) pods: Pods,
    own_writes: [Option<u64>; 2],
    seen: [Option<u64>; 2],
    /// The resumes of people that nobody has taken.
    pub(crate) resumes: Vec<(v1::ObjectRef, Extent)>,
    /// The uids of the ReplicaSets that an open list has shown so far.
    listed: HashSet<String>,
}

impl View {
    /// Replaces the ReplicaSets by the ReplicaSets of a list, of which `part` comes next.
    pub(crate) fn list_replica_sets(&mut self, part: Part, replica_sets: &[ReplicaSet]) {
        if part.begins {
            self.listed.clear();
        }
        for set in replica_sets {
            self.apply_replica_set(set);
            self.listed.insert(set.projected.uid.clone());
        }
        if part.ends {
            let listed = std::mem::take(&mut self.listed);
            self.templates.retain(|uid| listed.contains(uid));
            self.pods.retain_known(|uid| listed.contains(uid));
        }
    }

    /// Takes a ReplicaSet's state; an older one changes nothing.
    pub(crate) fn apply_replica_set(&mut self, replica_set: &ReplicaSet) {
        let set = &replica_set.projected;
        self.pods.know(&pods::key(&set.namespace, &set.uid));
        if self.templates.apply(replica_set) {
            let extent = Extent::of_annotation(&set.resume);
            self.resumes.push((object_ref(set), extent));
        }
    }

    pub(crate) fn delete_replica_set(&mut self, replica_set: &v1::ObjectRef) {
        self.templates.delete(&replica_set.uid);
        let key = pods::key(&replica_set.namespace, &replica_set.uid);
        self.pods.forget(&key);
    }

    /// The number of ReplicaSets and pods.
    pub(crate) fn objects(&self) -> usize {
        self.templates.count() + self.pods.count()
    }

    /// Notes the version up to which lists and watches have shown a kind.
    pub(crate) fn note_seen(&mut self, kind: Kind, version: Option<u64>) {
        let seen = &mut self.seen[kind as usize];
        *seen = (*seen).max(version);
    }

    /// Returns the newest version that lists and watches have shown.
    pub(crate) const fn seen(&self, kind: Kind) -> Option<u64> {
        self.seen[kind as usize]
    }

    /// Returns the newest version that lists, watches and writes have shown.
    pub(crate) fn known(&self, kind: Kind) -> Option<u64> {
        self.seen(kind).max(self.own_write(kind))
    }

    /// Notes the version of a write of this agent. A list that is older must not be used.
    pub(crate) fn note_write(&mut self, kind: Kind, version: &str) {
        let newest = &mut self.own_writes[kind as usize];
        *newest = (*newest).max(parse_version(version));
    }

    pub(crate) const fn own_write(&self, kind: Kind) -> Option<u64> {
        self.own_writes[kind as usize]
    }

    /// Takes the object of an answer, unless the watch is past it: a pod that the watch shows as gone stays gone.
    pub(crate) fn absorb(&mut self, answer: &Answer) {
        match answer {
            Ok(reply) if !self.is_ahead(reply.version()) => {}
            Ok(Reply::Pod(pod)) => self.pods.apply(pod),
            Ok(Reply::ReplicaSet(replica_set)) => self.apply_replica_set(replica_set),
            Ok(Reply::Gone(_)) | Err(_) => {}
        }
    }

    /// True if a version is newer than lists and watches have shown.
    fn is_ahead(&self, (kind, version): (Kind, &str)) -> bool {
        parse_version(version).is_some_and(|version| Some(version) > self.seen[kind as usize])
    }
}

pub(crate) mod pods;
pub(crate) mod template;
