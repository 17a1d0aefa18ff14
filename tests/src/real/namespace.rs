//! A namespace of one test.

use std::ops::Deref;

use serde_json::{Value, json};

use super::api::{Api, Refusal};

/// A namespace that accepts pods, and the paths in it. Its requests are those of the client that created it.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: String,
    api: Api,
}

impl Namespace {
    /// Makes a namespace with the service account that admission requires for pods.
    ///
    /// # Panics
    /// If the namespace exists: tests name their namespaces after themselves.
    pub async fn create(api: Api, name: &str) -> Self {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        api.make("/api/v1/namespaces", &namespace).await;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let path = format!("/api/v1/namespaces/{name}/serviceaccounts");
        if let Err(refusal) = api.create(&path, &account).await {
            let made_by_controller = refusal.reason == "AlreadyExists";
            assert!(made_by_controller, "no service account: {refusal:?}");
        }
        let name = name.to_owned();
        Self { name, api }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the client that created the namespace.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Returns the path of a pod of this name, or of all pods for an empty name.
    pub fn pod(&self, name: &str) -> String {
        self.path("/api/v1", "pods", name)
    }

    /// Returns the path of a ReplicaSet of this name, or of all ReplicaSets for an empty name.
    pub fn replica_set(&self, name: &str) -> String {
        self.path("/apis/apps/v1", "replicasets", name)
    }

    /// Returns a path below a group such as `/apis/apps/v1`.
    pub fn path(&self, group: &str, resource: &str, name: &str) -> String {
        let namespace = &self.name;
        let path = format!("{group}/namespaces/{namespace}/{resource}/{name}");
        path.trim_end_matches('/').to_owned()
    }

    /// Returns all pods, including terminating ones.
    ///
    /// # Errors
    /// The refusal of the API server.
    pub async fn pods(&self) -> Result<Vec<Value>, Refusal> {
        self.api.list(&self.pod("")).await
    }
}

impl Deref for Namespace {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}
