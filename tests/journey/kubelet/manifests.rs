//! Static pods: the pods in files of a node, and their mirrors on the API server.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};
use tests::real::Api;

use super::node::Node;

const SOURCE: &str = "kubernetes.io/config.source";
const MIRROR: &str = "kubernetes.io/config.mirror";
const HASH: &str = "kubernetes.io/config.hash";

/// The current static pods in the files of a node, by their uids. Skips invalid manifests, which may be incomplete.
pub(crate) fn of(node: &Node) -> BTreeMap<String, Value> {
    let folder = node.host().join("etc/kubernetes/manifests");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let pods = texts.filter_map(|text| pod(node, &text));
    pods.collect()
}

fn pod(node: &Node, text: &str) -> Option<(String, Value)> {
    let mut pod: Value = serde_saphyr::from_str(text).ok()?;
    let name = format!("{}-{}", pod["metadata"]["name"].as_str()?, node.name());
    // A changed text is another pod.
    let hash = text.bytes().fold(0_u64, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let uid = format!("static-{name}-{hash:x}");
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["uid"] = json!(uid);
    pod["metadata"]["annotations"][SOURCE] = json!("file");
    pod["metadata"]["annotations"][HASH] = json!(uid);
    pod["spec"]["nodeName"] = json!(node.name());
    pod["spec"]["restartPolicy"] = json!("Always");
    Some((uid, pod))
}

/// Whether a pod comes from a file.
pub(crate) fn is_static(pod: &Value) -> bool {
    pod["metadata"]["annotations"][SOURCE] == "file"
}

/// Whether a pod of the API server only mirrors a static one.
pub(crate) fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"][MIRROR].is_string()
}

/// The mirror of a static pod among the pods of the API server.
pub(crate) fn mirror_of<'a>(pod: &Value, pods: &'a BTreeMap<String, Value>) -> Option<&'a Value> {
    let same = |other: &Value, key: &str| other["metadata"][key] == pod["metadata"][key];
    let mut pods = pods.values();
    pods.find(|it| is_mirror(it) && same(it, "name") && same(it, "namespace"))
}

/// Whether a mirror shows this version of its pod.
pub(crate) fn shows(mirror: &Value, pod: &Value) -> bool {
    mirror["metadata"]["deletionTimestamp"].is_null()
        && mirror["metadata"]["annotations"][MIRROR] == pod["metadata"]["uid"]
}

/// Makes the mirror of a static pod. A failed request is repeated later.
pub(crate) async fn mirror(api: &Api, pod: &Value) {
    let (metadata, node) = (&pod["metadata"], &pod["spec"]["nodeName"]);
    let path = format!("/api/v1/nodes/{}", node.as_str().unwrap_or_default());
    let Ok(node) = api.get(&path).await else {
        return;
    };
    let mut mirror = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata["labels"],
            "annotations": metadata["annotations"],
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Node", "controller": true,
                "name": node["metadata"]["name"], "uid": node["metadata"]["uid"],
            }],
        },
        "spec": pod["spec"],
    });
    mirror["metadata"]["annotations"][MIRROR] = metadata["uid"].clone();
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let _ = api.create(&path, &mirror).await;
}
