//! Builders of objects with ordinary defaults, for the scenarios of the core and the tests of shadow mode.

use std::sync::Arc;

use decree_core::{
    Condition, Key, Labels, OwnerReference, Parts, Phase, Pod, PodState, Ready, ReplicaSet,
    ResourceVersion, Selector, Status, Timestamp, Uid,
};

pub(crate) const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| (Arc::from(*key), Arc::from(*value)))
        .collect()
}

pub(crate) fn key(name: &str) -> Key {
    Key {
        namespace: "default".into(),
        name: name.into(),
        uid: Uid(format!("uid-{name}").into()),
    }
}

pub(crate) fn owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: name.into(),
        uid: key(name).uid,
        block_owner_deletion: Some(true),
    }
}

/// A ReplicaSet that selects and labels `app=NAME`, with a matching status.
pub(crate) fn set(name: &str, replicas: i32) -> ReplicaSet {
    ReplicaSet {
        key: key(name),
        version: Some(ResourceVersion(1)),
        generation: 1,
        deleting: false,
        controller: None,
        replicas,
        min_ready_seconds: 0,
        selector: selector(&[("app", name)]),
        template_labels: labels(&[("app", name)]),
        status: Status {
            observed_generation: 1,
            terminating_replicas: Some(0),
            ..Status::default()
        },
        resume: "".into(),
        preferences: None,
        replicas_manager: "".into(),
    }
}

pub(crate) fn selector(pairs: &[(&str, &str)]) -> Result<Selector, decree_core::Quarantine> {
    Selector::parse(Some(Parts {
        match_labels: pairs.to_vec(),
        match_expressions: Vec::new(),
    }))
}

/// A running, ready pod with the labels of `app`, without an owner.
pub(crate) fn orphan(name: &str, app: &str) -> Pod {
    Pod {
        namespace: "default".into(),
        name: name.into(),
        uid: Uid(format!("uid-{name}").into()),
        version: Some(ResourceVersion(1)),
        labels: labels(&[("app", app)]),
        controller: None,
        node: Some("node-a".into()),
        deleted: None,
        waiting: None,
        state: PodState {
            created: Some(START),
            phase: Phase::Running,
            ready: Ready {
                ready: true,
                since: Some(START),
            },
            ..PodState::default()
        },
    }
}

/// A running, ready pod of the ReplicaSet `app`.
pub(crate) fn pod(name: &str, app: &str) -> Pod {
    Pod {
        controller: Some(owner(app)),
        ..orphan(name, app)
    }
}

pub(crate) fn with(mut pod: Pod, change: impl FnOnce(&mut PodState)) -> Pod {
    change(&mut pod.state);
    pod
}

pub(crate) fn unready(pod: Pod) -> Pod {
    with(pod, |state| state.ready = Ready::default())
}

pub(crate) fn failure(reason: &str, message: &str) -> Condition {
    Condition {
        kind: "ReplicaFailure".to_owned(),
        status: "True".to_owned(),
        last_transition: Some(START),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}
