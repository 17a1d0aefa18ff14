//! Tests of the cluster, and their helpers.

mod chaos;
mod story;

use std::time::Duration;

use expect_test::expect_file;
use serde_json::{Value, json};

use crate::{Cluster, ClusterConfig, Kubelet};

/// Tests that play the stories of a table.
macro_rules! tables {
    ($($name:ident: $file:literal,)*) => {$(
        #[test]
        fn $name() {
            story::play(include_str!($file), &expect_file![$file]);
        }
    )*};
}

tables! {
    objects_are_created: "tests/tables/creation.txt",
    objects_are_deleted: "tests/tables/deletion.txt",
    objects_are_changed: "tests/tables/updates.txt",
    pods_live_on_nodes: "tests/tables/life.txt",
    changes_are_watched: "tests/tables/watches.txt",
}

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

#[test]
fn uids_and_jitter_come_from_the_seed() {
    let end = |seed| {
        let kubelet = Kubelet {
            jitter: Duration::from_millis(500),
            ..Kubelet::default()
        };
        let mut cluster = Cluster::new(ClusterConfig {
            seed,
            kubelet,
            ..ClusterConfig::default()
        });
        let created = cluster.create(pod("a")).expect("it is valid");
        while let Some(due) = cluster.next_due() {
            cluster.advance(due);
        }
        [
            created["metadata"]["uid"].to_string(),
            cluster.now().to_string(),
        ]
    };
    assert_eq!(end(1), end(1));
    assert!(end(1).iter().zip(end(2)).all(|(one, two)| *one != two));
}
