//! Static pods on the nodes of the control plane, as the documents tell an administrator to create them.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tests::{binaries, real::User};

use super::cluster::{Cluster, IMAGE};

const NODES: [&str; 2] = ["control-1", "control-2"];
const MANIFEST: &str = "etc/kubernetes/manifests/decree.yaml";
const PODS: &str =
    "/api/v1/namespaces/kube-system/pods?labelSelector=app.kubernetes.io/name=decree";
const USER: u32 = 65532;

/// Puts a kubeconfig, the keys of tokens and the manifest on each node of the control plane, with an image.
pub(crate) fn put(cluster: &Cluster, image: &str) {
    let keys = cluster.shell("kubectl get --raw /openid/v1/jwks");
    for node in NODES {
        let host = cluster.kubelets().host(node);
        let file = host.join("etc/kubernetes/decree.conf");
        fs::write(&file, kubeconfig(cluster)).expect("there is room");
        chown(&file, Some(USER), Some(USER)).expect("it is root's");
        let only_theirs = fs::Permissions::from_mode(0o400);
        fs::set_permissions(&file, only_theirs).expect("it is there");
        fs::write(host.join("etc/kubernetes/decree-keys.json"), &keys).expect("there is room");
        put_manifest(host, image);
    }
}

/// Puts the manifest with another image on only one node.
pub(crate) fn put_on_first(cluster: &Cluster, image: &str) {
    put_manifest(cluster.kubelets().host(NODES[0]), image);
}

/// Removes the manifests.
pub(crate) fn take_away(cluster: &Cluster) {
    for node in NODES {
        let manifest = cluster.kubelets().host(node).join(MANIFEST);
        fs::remove_file(manifest).expect("it was put there");
    }
}

/// Waits until the pods of all nodes are ready.
pub(crate) async fn are_ready(cluster: &Cluster) {
    let ready = |pods: &Value| {
        let pods = pods["items"].as_array()?.iter();
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
        };
        (pods.filter(is_ready).count() == NODES.len()).then_some(())
    };
    cluster.wait_for("ready", PODS, ready).await;
}

fn put_manifest(host: &Path, image: &str) {
    let shipped = binaries::checkout().join("deploy/static-pods/decree.yaml");
    let shipped = fs::read_to_string(shipped).expect("it is in the checkout");
    // In one step, by renaming a file: half a manifest is invalid.
    let beside = host.join("decree.yaml");
    fs::write(&beside, shipped.replace(IMAGE, image)).expect("there is room");
    fs::rename(beside, host.join(MANIFEST)).expect("it is beside it");
}

/// A kubeconfig of the user `decree-agent` for a node, where the API server is behind its Service.
fn kubeconfig(cluster: &Cluster) -> String {
    let known = cluster.server.kubeconfig(User::Decree);
    let known = fs::read_to_string(known).expect("it was written with the cluster");
    let known: Value = serde_saphyr::from_str(&known).expect("it is YAML");
    let authority = fs::read(cluster.server.ca()).expect("it was made");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "node",
        "contexts": [{"name": "node", "context": {"cluster": "node", "user": "decree-agent"}}],
        "clusters": [{"name": "node", "cluster": {
            "server": "https://10.0.0.1:443", "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": "decree-agent", "user": known["users"][0]["user"]}],
    });
    config.to_string()
}
