//! A node: its heartbeats, and the resources that its pods share.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};
use tests::{
    lock,
    real::{Api, Patch},
};

use super::{clock, network::Network};

const ADDRESS: &str = "127.0.0.1";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// A node, up or lost.
#[derive(Debug)]
pub(crate) struct Node {
    name: String,
    is_control_plane: bool,
    is_up: AtomicBool,
    host: PathBuf,
    network: Mutex<Option<Arc<Network>>>,
}

impl Node {
    /// Makes a running node, with a folder as its file system. Its name says whether it is of the control plane.
    pub(crate) fn of(name: &str, folder: &Path) -> io::Result<Self> {
        let host = folder.join(name);
        fs::create_dir_all(host.join("etc/kubernetes/manifests"))?;
        Ok(Self {
            name: name.to_owned(),
            is_control_plane: name.starts_with("control-"),
            is_up: AtomicBool::new(true),
            host,
            network: Mutex::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::SeqCst)
    }

    /// Takes the node down with everything on it, or brings it back.
    pub(crate) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::SeqCst);
    }

    /// The folder that is the root of its file system.
    pub(crate) fn host(&self) -> &Path {
        &self.host
    }

    pub(crate) fn address(&self) -> &'static str {
        ADDRESS
    }

    /// The network for a pod: the node's, or a new one.
    pub(crate) fn network(&self, of_host: bool) -> io::Result<Arc<Network>> {
        if !of_host {
            return Ok(Arc::new(Network::create()?));
        }
        let mut network = lock(&self.network);
        if let Some(network) = &*network {
            return Ok(Arc::clone(network));
        }
        let made = Arc::new(Network::create()?);
        *network = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Sends a heartbeat: creates the Node and its Lease, or renews them. The next heartbeat repeats failed requests.
    pub(crate) async fn beats(&self, api: &Api, port: u16) {
        let path = format!("/api/v1/nodes/{}", self.name);
        let status = json!({"status": self.status(port)});
        let status_path = format!("{path}/status");
        let told = api.patch(&status_path, Patch::Merge, &status).await;
        if told.is_err_and(|refusal| refusal.code == 404) {
            let _ = api.create("/api/v1/nodes", &self.object()).await;
            let _ = api.patch(&status_path, Patch::Merge, &status).await;
        }
        let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": {
                "holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": clock::precisely(),
            },
        });
        let lease_path = format!("{leases}/{}", self.name);
        let renewed = api.patch(&lease_path, Patch::Merge, &lease).await;
        if renewed.is_err_and(|refusal| refusal.code == 404) {
            let _ = api.create(leases, &lease).await;
        }
    }

    /// The Node, with the labels and taints of kubeadm.
    fn object(&self) -> Value {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}},
        });
        if self.is_control_plane {
            node["metadata"]["labels"][CONTROL_PLANE] = json!("");
            node["spec"]["taints"] = json!([{"key": CONTROL_PLANE, "effect": "NoSchedule"}]);
        }
        node
    }

    fn status(&self, port: u16) -> Value {
        let now = clock::now();
        let capacity = json!({"cpu": "16", "memory": "64Gi", "pods": "250"});
        json!({
            // No resolver knows the name of a node here.
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
            "capacity": capacity, "allocatable": capacity,
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
        })
    }
}
