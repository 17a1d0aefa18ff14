//! The acts of people and kubelets, and the waits for their effects.

use serde_json::{Value, json};
use tests::real::Namespace;

pub(crate) async fn create_set(namespace: &Namespace, set: &Value) -> Value {
    let sets = namespace.replica_set("");
    namespace.make(&sets, set).await
}

pub(crate) async fn create_pod(namespace: &Namespace, pod: &Value) -> Value {
    namespace.make(&namespace.pod(""), pod).await
}

pub(crate) async fn patch_set(namespace: &Namespace, name: &str, patch: &Value) -> Value {
    namespace.change(&namespace.replica_set(name), patch).await
}

/// Sets the desired replicas of a ReplicaSet.
pub(crate) async fn scale(namespace: &Namespace, name: &str, replicas: u32) -> Value {
    patch_set(namespace, name, &json!({"spec": {"replicas": replicas}})).await
}

/// Writes the status of a ReplicaSet as its controller would.
pub(crate) async fn set_status(namespace: &Namespace, name: &str, status: &Value) -> Value {
    let path = format!("{}/status", namespace.replica_set(name));
    namespace.change(&path, &json!({"status": status})).await
}

pub(crate) async fn patch_pod(namespace: &Namespace, pod: &Value, patch: &Value) -> Value {
    namespace.change(&namespace.pod(name(pod)), patch).await
}

/// Writes the status of a pod as its kubelet would.
pub(crate) async fn set_pod_status(namespace: &Namespace, pod: &Value, status: &Value) -> Value {
    let path = format!("{}/status", namespace.pod(name(pod)));
    namespace.change(&path, &json!({"status": status})).await
}

/// Deletes a pod, with its grace period.
pub(crate) async fn delete_pod(namespace: &Namespace, pod: &Value) {
    let path = namespace.pod(name(pod));
    namespace.remove(&path, &json!({})).await;
}

/// Removes a pod at once, as a kubelet does after the pod has stopped.
pub(crate) async fn remove_pod(namespace: &Namespace, pod: &Value) {
    let path = namespace.pod(name(pod));
    let at_once = json!({"gracePeriodSeconds": 0});
    namespace.remove(&path, &at_once).await;
}

/// Waits until the status of a ReplicaSet has these fields, null for an absent one, and observes the current generation. Returns
/// the ReplicaSet.
pub(crate) async fn status_becomes(namespace: &Namespace, name: &str, wanted: &Value) -> Value {
    let path = namespace.replica_set(name);
    let fields = wanted.as_object().expect("it is an object").clone();
    let api = namespace.api();
    api.wait_for(&format!("of status {wanted}"), &path, |set| {
        let status = &set["status"];
        let has = |(field, value): (&String, &Value)| {
            // A count of zero is left out.
            let absent = status[field].is_null() && *value == 0 && field != "terminatingReplicas";
            status[field] == *value || absent
        };
        let observed = status["observedGeneration"] == set["metadata"]["generation"];
        (observed && fields.iter().all(has)).then(|| set.clone())
    })
    .await
}

/// Waits until there are exactly `count` pods, including terminating ones, and returns them.
pub(crate) async fn pods_become(namespace: &Namespace, count: usize) -> Vec<Value> {
    let what = format!("{count} pods");
    pods_become_so(namespace, &what, |pods| pods.len() == count).await
}

/// Waits until `are_so` holds for the pods, and returns them.
pub(crate) async fn pods_become_so(
    namespace: &Namespace,
    what: &str,
    are_so: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let (api, path) = (namespace.api(), namespace.pod(""));
    api.wait_for(what, &path, |list| {
        let pods = list["items"].as_array().expect("it is a list");
        are_so(pods).then(|| pods.clone())
    })
    .await
}

/// Waits until `is_so` holds for one pod, and returns it.
pub(crate) async fn pod_becomes(
    namespace: &Namespace,
    pod: &Value,
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let path = namespace.pod(name(pod));
    let api = namespace.api();
    api.wait_for(what, &path, |pod| is_so(pod).then(|| pod.clone()))
        .await
}

pub(crate) fn name(object: &Value) -> &str {
    let name = object["metadata"]["name"].as_str();
    name.expect("a stored object has a name")
}
