//! Any sequence of calls, sensible or not: nothing panics, and watches agree with lists.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{cluster, owned, pod, replica_set};
use crate::{
    Cluster, DeleteOptions, EventKind, Kind, Propagation, WatchId, WatchPoll, random::Random,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const STEPS: usize = 400;

#[test]
fn watches_agree_with_lists_after_any_sequence_of_calls() {
    for seed in 0..30 {
        let mut random = Random::new(seed);
        let mut cluster = cluster();
        let mut delivered = BTreeMap::new();
        let watch = cluster
            .watch(Kind::Pod, cluster.version())
            .expect("the version is the newest");
        for _ in 0..STEPS {
            step(&mut cluster, &mut random);
            follow(&mut cluster, watch, &mut delivered);
        }
        let stored: BTreeMap<_, _> = cluster
            .objects(Kind::Pod)
            .map(|pod| (name(pod), Value::clone(pod)))
            .collect();
        assert_eq!(delivered, stored, "seed {seed}");
    }
}

fn step(cluster: &mut Cluster, random: &mut Random) {
    let name = NAMES[random.below(4) as usize];
    let kind = if random.below(1000) < 700 {
        Kind::Pod
    } else {
        Kind::ReplicaSet
    };
    // Refusals are allowed here; only a panic is not.
    let _ = match random.below(11) {
        0 | 1 => cluster.create(newcomer(cluster, random, name)).is_ok(),
        2 => cluster
            .create(spoiled(newcomer(cluster, random, name), random))
            .is_ok(),
        3 => cluster
            .patch(kind, "default", name, &odd_patch(random))
            .is_ok(),
        4 => cluster
            .delete(kind, "default", name, &any_deletion(random))
            .is_ok(),
        5 => cluster
            .update_status(&spoiled(replica_set(name, 1), random))
            .is_ok(),
        6 => cluster
            .scale("default", name, random.below(5) as i32 - 1)
            .is_ok(),
        7 => cluster
            .set_pod_status("default", name, &odd_value(random))
            .is_ok(),
        8 => cluster
            .set_pod_status("default", name, &json!({"phase": "Failed"}))
            .is_ok(),
        9 => cluster.fail_node("node-a").is_ok() && cluster.recover_node("node-a").is_ok(),
        _ => {
            let pause = Duration::from_millis(random.below(400));
            cluster.advance(cluster.now() + pause);
            true
        }
    };
}

fn newcomer(cluster: &Cluster, random: &mut Random, name: &str) -> Value {
    let owner = cluster.peek(Kind::ReplicaSet, "default", name).cloned();
    match (random.below(3), owner) {
        (0, _) => replica_set(name, 1),
        (1, Some(owner)) => owned(pod(name), &owner),
        _ => pod(name),
    }
}

/// Replaces one value somewhere in an object by an odd value.
fn spoiled(mut object: Value, random: &mut Random) -> Value {
    let mut key = &mut object;
    for _ in 0..=random.below(4) {
        let count = key.as_object().map_or(0, serde_json::Map::len);
        if count == 0 {
            break;
        }
        let chosen = random.below(count as u64) as usize;
        key = key
            .as_object_mut()
            .and_then(|it| it.values_mut().nth(chosen))
            .expect("below the count");
    }
    *key = odd_value(random);
    object
}

fn odd_value(random: &mut Random) -> Value {
    let odd = [
        json!(null),
        json!(-1),
        json!("x"),
        json!([]),
        json!([1, "x", null, {}]),
        json!({}),
        json!({"phase": "Running", "conditions": [1, {"type": "Ready", "status": "True"}]}),
        json!({"name": "x", "containers": ["x"]}),
        json!({"containerStatuses": [{"restartCount": "many"}], "conditions": "none"}),
    ];
    odd[random.below(odd.len() as u64) as usize].clone()
}

fn odd_patch(random: &mut Random) -> Value {
    let sensible = [
        json!({"metadata": {"labels": {"app": "b"}}}),
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"metadata": {"ownerReferences": [{"uid": "u", "kind": "ReplicaSet", "name": "u"}]}}),
        json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "u"}]}}),
        json!({"spec": {"containers": [{"name": "main", "image": "i"}]}}),
    ];
    let patch = sensible[random.below(sensible.len() as u64) as usize].clone();
    if random.below(1000) < 300 {
        spoiled(patch, random)
    } else {
        patch
    }
}

fn any_deletion(random: &mut Random) -> DeleteOptions {
    let propagation = [
        Propagation::Background,
        Propagation::Foreground,
        Propagation::Orphan,
    ];
    DeleteOptions {
        propagation: propagation[random.below(3) as usize],
        ..DeleteOptions::default()
    }
}

fn follow(cluster: &mut Cluster, watch: WatchId, delivered: &mut BTreeMap<String, Value>) {
    while let WatchPoll::Event(event) = cluster.poll_watch(watch) {
        let (name, object) = (name(&event.object), Value::clone(&event.object));
        match event.kind {
            EventKind::Added => assert!(delivered.insert(name, object).is_none()),
            EventKind::Modified => assert!(delivered.insert(name, object).is_some()),
            EventKind::Deleted => assert!(delivered.remove(&name).is_some()),
            EventKind::Bookmark => {}
        }
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
