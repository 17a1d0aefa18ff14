//! Pure queries of the objects of an embedded cluster.

use std::collections::BTreeSet;

use agent_fake::{Cluster, Kind, Verb};
use decree::v1;
use serde_json::Value;
use server_core::wording::count;

use crate::sandbox::{act::is_active, beginning::NAMESPACE};

/// The number of writes that the cluster executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writes {
    /// Created pods.
    pub(super) creates: u64,
    /// Requests to delete a pod, including repeated ones.
    pub(super) deletes: u64,
    /// Changes of objects.
    pub(super) changes: u64,
}

/// Whether the status of every ReplicaSet is of its current generation.
pub(super) fn all_observed(cluster: &Cluster) -> bool {
    cluster
        .objects(Kind::ReplicaSet)
        .all(|set| number(set, "/status/observedGeneration") == number(set, "/metadata/generation"))
}

/// Whether every ReplicaSet has its desired pods, all ready, no surplus pod, and a status that says so.
pub(super) fn all_settled(cluster: &Cluster) -> bool {
    all_observed(cluster) && unsettled(cluster).is_none()
}

/// The state of every ReplicaSet, by namespace and name.
pub(super) fn standings(cluster: &Cluster) -> Vec<String> {
    let sets = cluster.objects(Kind::ReplicaSet);
    sets.map(|set| standing(set)).collect()
}

/// The state of the first ReplicaSet that has not settled.
pub(super) fn unsettled(cluster: &Cluster) -> Option<String> {
    let mut sets = cluster.objects(Kind::ReplicaSet);
    let set = sets.find(|set| {
        let desired = number(set, "/spec/replicas");
        ["/status/replicas", "/status/readyReplicas"].map(|field| number(set, field))
            != [desired; 2]
            || number(set, "/status/terminatingReplicas") != 0
    });
    set.map(|set| standing(set))
}

/// The names of the active pods of a ReplicaSet.
pub(super) fn pods_of(cluster: &Cluster, set: &str) -> BTreeSet<String> {
    let pods = active_pods(cluster, set);
    pods.map(|pod| text(pod, "/metadata/name").to_owned())
        .collect()
}

/// The active pods of a ReplicaSet as a server refers to them.
pub(super) fn references(cluster: &Cluster, set: &str) -> Vec<v1::ObjectRef> {
    active_pods(cluster, set).map(reference).collect()
}

/// The reference of a server to a ReplicaSet, and its generation.
pub(super) fn replica_set(cluster: &Cluster, name: &str) -> (v1::ObjectRef, i64) {
    let set = cluster.peek(Kind::ReplicaSet, NAMESPACE, name);
    let set = set.map(|set| (reference(set), number(set, "/metadata/generation")));
    set.unwrap_or_default()
}

fn reference(object: &Value) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        uid: text(object, "/metadata/uid").to_owned(),
    }
}

fn active_pods<'a>(cluster: &'a Cluster, set: &str) -> impl Iterator<Item = &'a Value> {
    let is_own = move |pod: &&Value| {
        let owners = Value::pointer(pod, "/metadata/ownerReferences").and_then(Value::as_array);
        let is_owner = |it: &Value| it["controller"] == true && it["name"] == *set;
        owners.is_some_and(|owners| owners.iter().any(is_owner))
    };
    let pods = cluster.objects(Kind::Pod).map(|pod| &**pod);
    pods.filter(is_own).filter(|pod| is_active(pod))
}

// === impl Writes ===

impl Writes {
    pub(super) fn of(cluster: &Cluster) -> Self {
        const CREATED: u16 = 201;
        let requests = cluster.requests();
        let changes = [
            requests.count(Verb::Patch, Kind::Pod),
            requests.count(Verb::Patch, Kind::ReplicaSet),
            requests.count(Verb::UpdateStatus, Kind::ReplicaSet),
        ];
        Self {
            creates: requests.count_answered(Verb::Create, Kind::Pod, CREATED),
            deletes: requests.count(Verb::Delete, Kind::Pod),
            changes: changes.iter().sum(),
        }
    }
}

fn standing(set: &Value) -> String {
    format!(
        "{}/{} has {} of {} ready",
        text(set, "/metadata/namespace"),
        text(set, "/metadata/name"),
        number(set, "/status/readyReplicas"),
        count(number(set, "/spec/replicas"), "pod"),
    )
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    let number = object.pointer(pointer).and_then(Value::as_i64);
    number.unwrap_or_default()
}
