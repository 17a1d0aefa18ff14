//! Tests of the cluster, and their helpers.

mod chaos;
mod creation;
mod deletion;
mod faults;
mod life;
mod ownership;
mod restores;
mod scale;
mod updates;
mod watches;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{ApiError, Cluster, ClusterConfig, DeleteOptions, Deletion, Kind, Object};

fn cluster() -> Cluster {
    Cluster::new(ClusterConfig::default())
}

fn replica_set(name: &str, replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "web:1"}]},
            },
        },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    })
}

fn owned(mut pod: Value, owner: &Value) -> Value {
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    pod
}

trait Story {
    fn created(&mut self, object: Value) -> Object;
    fn pass(&mut self, millis: u64);
    fn settle(&mut self);
    fn pod(&self, name: &str) -> Option<&Object>;
    fn drop_pod(&mut self, name: &str, options: &DeleteOptions) -> Result<Deletion, ApiError>;
}

impl Story for Cluster {
    fn created(&mut self, object: Value) -> Object {
        self.create(object).expect("the story's object is valid")
    }

    fn pass(&mut self, millis: u64) {
        self.advance(self.now() + Duration::from_millis(millis));
    }

    fn settle(&mut self) {
        while let Some(due) = self.next_due() {
            self.advance(due);
        }
    }

    fn pod(&self, name: &str) -> Option<&Object> {
        self.peek(Kind::Pod, "default", name)
    }

    fn drop_pod(&mut self, name: &str, options: &DeleteOptions) -> Result<Deletion, ApiError> {
        self.delete(Kind::Pod, "default", name, options)
    }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ApiError>) -> (u16, String) {
    let error = result.expect_err("the call must be refused");
    (error.code, error.message)
}
