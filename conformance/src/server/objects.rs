//! The objects of the cases, and the outcomes of operations.

use std::collections::HashMap;

use decree::v1::{
    Done, Failed, Kind, LabelSelector, NotStarted, ObjectRef, OwnerReference, Pod, PodPhase,
    ReadyCondition, ReplicaSet, ReplicaSetStatus, done, event, outcome,
};
use prost_types::Timestamp;

/// The ReplicaSet of most cases.
pub(super) fn web(replicas: i32) -> ReplicaSet {
    replica_set("web", replicas)
}

/// [`web`] after a change of its replicas.
pub(super) fn scaled(replicas: i32) -> ReplicaSet {
    ReplicaSet {
        resource_version: "110".to_owned(),
        generation: 2,
        ..web(replicas)
    }
}

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

/// [`web`] with a status that needs no write while it has its desired pods.
pub(super) fn settled(replicas: i32) -> ReplicaSet {
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
        ..web(replicas)
    }
}

/// A ready pod of [`web`].
pub(super) fn pod(name: &str) -> Pod {
    pod_of("web", name)
}

pub(super) fn at(version: &str, pod: Pod) -> Pod {
    Pod {
        resource_version: version.to_owned(),
        ..pod
    }
}

/// A ready pod that a ReplicaSet controls.
pub(super) fn pod_of(owner: &str, name: &str) -> Pod {
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

/// The deletion of [`web`].
pub(super) fn web_gone(version: &str) -> event::Event {
    deleted(Kind::ReplicaSet, "web", version)
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

/// The outcome of a write with the resulting pod.
pub(super) fn done(pod: Pod) -> outcome::Outcome {
    outcome::Outcome::Done(Done {
        uid: pod.uid.clone(),
        resource_version: pod.resource_version.clone(),
        object: Some(done::Object::Pod(pod)),
        ..Done::default()
    })
}

/// The outcome of a write at version 150, without its object.
pub(super) fn bare() -> outcome::Outcome {
    outcome::Outcome::Done(Done {
        resource_version: "150".to_owned(),
        ..Done::default()
    })
}

pub(super) fn failed(class: impl Into<i32>) -> outcome::Outcome {
    outcome::Outcome::Failed(Failed {
        class: class.into(),
        ..Failed::default()
    })
}

pub(super) fn not_started(cause: impl Into<i32>) -> outcome::Outcome {
    outcome::Outcome::NotStarted(NotStarted {
        cause: cause.into(),
        ..NotStarted::default()
    })
}
