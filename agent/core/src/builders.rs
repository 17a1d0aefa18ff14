//! Objects, batches and answers for the tests of this crate.

use decree::v1::{self, batch::Action, outcome::Outcome as OutcomeKind};
use serde_json::{Value, json};

use crate::{
    api::{ApiError, Object},
    guard::Guard,
    view::View,
};

pub(crate) const SESSION: &str = "s-1";
pub(crate) const EPOCH: i64 = 7;

/// The ReplicaSet default/web of uid `rs`, as the API writes it.
pub(crate) fn replica_set(version: u64, generation: i64) -> Object {
    Object::from(json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": "default", "name": "web", "uid": "rs",
            "resourceVersion": version.to_string(), "generation": generation,
            "labels": {"team": "a"},
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
        },
        "status": {"replicas": 0},
    }))
}

pub(crate) fn template() -> Value {
    json!({
        "metadata": {
            "labels": {"app": "web"}, "annotations": {"note": "x"}, "finalizers": ["f/x"],
            "name": "ignored", "namespace": "ignored", "generateName": "ignored-",
            "ownerReferences": [{"uid": "ignored"}],
        },
        "spec": {"containers": [{"name": "c", "image": "i", "fieldOfTomorrow": {"deep": [1, null]}}]},
    })
}

/// A pod of default/web, as the API writes it.
pub(crate) fn pod(name: &str, version: u64) -> Object {
    Object::from(json!({
        "metadata": {
            "namespace": "default", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "labels": {"app": "web"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
    }))
}

/// The object as the API writes it.
pub(crate) fn written(object: &Object) -> &Value {
    object.written().expect("these are")
}

pub(crate) fn with(object: &Object, pointer: &str, value: Value) -> Object {
    let mut changed = written(object).clone();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
    changed.pointer_mut(parent).expect("the parent is there")[field] = value;
    changed.into()
}

pub(crate) fn orphan(name: &str, version: u64) -> Object {
    with(
        &pod(name, version),
        "/metadata/ownerReferences",
        Value::Null,
    )
}

pub(crate) fn deleting(object: &Object) -> Object {
    with(
        object,
        "/metadata/deletionTimestamp",
        "2026-01-01T00:00:00Z".into(),
    )
}

pub(crate) fn owner() -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: "web".into(),
        uid: "rs".into(),
    }
}

pub(crate) fn pod_ref(name: &str) -> v1::ObjectRef {
    v1::ObjectRef {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

pub(crate) fn batch(id: u64, action: Action) -> v1::Batch {
    v1::Batch {
        id,
        replica_set: Some(owner()),
        generation: 1,
        replica_set_version: "10".into(),
        guard: Some(v1::Guard {
            session_id: SESSION.into(),
            epoch: EPOCH,
        }),
        action: Some(action),
        ..v1::Batch::default()
    }
}

pub(crate) fn create(count: usize) -> Action {
    Action::Create(v1::Create {
        names: (0..count).map(|index| format!("web-{index}")).collect(),
        generate_name: "web-".into(),
        slow_start_initial: 1,
    })
}

pub(crate) fn delete(names: &[&str]) -> Action {
    let victim = |name: &&str| v1::Victim {
        pod: Some(pod_ref(name)),
        ..v1::Victim::default()
    };
    Action::Delete(v1::Delete {
        victims: names.iter().map(victim).collect(),
    })
}

pub(crate) fn claim(adopts: &[&str], releases: &[&str]) -> Action {
    let refs = |names: &[&str]| names.iter().map(|name| pod_ref(name)).collect();
    Action::Claim(v1::Claim {
        adopts: refs(adopts),
        releases: refs(releases),
    })
}

pub(crate) fn write_status(replicas: i32) -> Action {
    let status = v1::ReplicaSetStatus {
        replicas,
        ..v1::ReplicaSetStatus::default()
    };
    Action::WriteStatus(v1::WriteStatus {
        status: Some(status),
    })
}

pub(crate) fn guard() -> Guard {
    Guard {
        session_id: Some(SESSION.into()),
        epoch: EPOCH,
        ..Guard::default()
    }
}

/// A view with default/web at version 10 and generation 1, and these pods.
pub(crate) fn view(pods: &[Object]) -> View {
    let mut view = View::default();
    show(&mut view, replica_set(10, 1));
    for pod in pods {
        view.apply_pod(&pod.clone().into_pod().expect("a valid pod"));
    }
    view
}

/// Shows a ReplicaSet to a view.
pub(crate) fn show(view: &mut View, object: Object) {
    let (projected, object) = object.into_replica_set().expect("a valid replica set");
    view.apply_replica_set(&projected, object);
}

pub(crate) fn refusal(code: u16, reason: &str) -> ApiError {
    ApiError {
        code: Some(code),
        reason: reason.into(),
        message: format!("refused: {reason}"),
        ..ApiError::default()
    }
}

/// Returns an outcome in one word: `done`, the class of the failure, or the cause of not starting.
pub(crate) fn word(outcome: &v1::Outcome) -> &'static str {
    match outcome.outcome.as_ref().expect("an outcome says something") {
        OutcomeKind::Done(done) if done.already_existed => "already existed",
        OutcomeKind::Done(_) => "done",
        OutcomeKind::Failed(failed) => failed.class().as_str_name(),
        OutcomeKind::NotStarted(not_started) => not_started.cause().as_str_name(),
    }
}
