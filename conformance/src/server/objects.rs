//! The objects of the cases.

use std::collections::HashMap;

use decree::v1::{
    Kind, LabelSelector, ObjectRef, OwnerReference, Pod, PodPhase, ReadyCondition, ReplicaSet,
    ReplicaSetStatus, event,
};
use prost_types::Timestamp;

pub(super) fn replica_set(name: &str, replicas: i32) -> ReplicaSet {
    ReplicaSet {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "10".to_owned(),
        generation: 1,
        replicas: Some(replicas),
        selector: Some(LabelSelector {
            match_labels: labels(name),
            ..LabelSelector::default()
        }),
        template_labels: labels(name),
        ..ReplicaSet::default()
    }
}

/// A ReplicaSet that needs no status write with its desired pods.
pub(super) fn settled(name: &str, replicas: i32) -> ReplicaSet {
    let status = ReplicaSetStatus {
        replicas,
        fully_labeled_replicas: replicas,
        ready_replicas: replicas,
        available_replicas: replicas,
        terminating_replicas: Some(0),
        observed_generation: 1,
        conditions: Vec::new(),
    };
    ReplicaSet {
        status: Some(status),
        ..replica_set(name, replicas)
    }
}

/// A ready pod that a ReplicaSet controls.
pub(super) fn pod(name: &str, owner: &str) -> Pod {
    let seconds = 1_700_000_000;
    Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("{name}-uid"),
        resource_version: "20".to_owned(),
        labels: labels(owner),
        controller: Some(OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: owner.to_owned(),
            uid: format!("{owner}-uid"),
            block_owner_deletion: Some(true),
        }),
        created: Some(Timestamp { seconds, nanos: 0 }),
        node_name: "node".to_owned(),
        phase: PodPhase::Running.into(),
        ready: Some(ReadyCondition {
            ready: true,
            since: Some(Timestamp { seconds, nanos: 0 }),
        }),
        ..Pod::default()
    }
}

pub(super) fn gone(name: &str, version: &str) -> event::Event {
    deleted(Kind::Pod, name, version)
}

pub(super) fn gone_set(name: &str, version: &str) -> event::Event {
    deleted(Kind::ReplicaSet, name, version)
}

fn deleted(kind: Kind, name: &str, version: &str) -> event::Event {
    event::Event::Deleted(decree::v1::Deleted {
        kind: kind.into(),
        object: Some(ObjectRef {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: format!("{name}-uid"),
        }),
        resource_version: version.to_owned(),
    })
}

fn labels(app: &str) -> HashMap<String, String> {
    HashMap::from([("app".to_owned(), app.to_owned())])
}
