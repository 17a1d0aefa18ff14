//! The story that is told where no files are given: what a Deployment amid an update goes through on a bad day.

use std::path::PathBuf;

use agent_fake::{ApiError, Cluster, DeleteOptions, Kind};
use decree_agent::manifest::{Document, Place};
use serde_json::{Value, json};

use super::{
    director::Director,
    scene::{self, all_served, all_settled},
};
use crate::exit::Failure;

const NAMESPACE: &str = "default";
/// The ReplicaSets of one Deployment: siblings, whose pods count as neighbours when victims are chosen.
const OLD: &str = "web-old";
const NEW: &str = "web-new";
/// The node that is lost and comes back.
const NODE: &str = "node-b";
const QUOTA: &str = "pods";

/// Returns what the cluster begins with.
pub(super) fn objects() -> Vec<Document> {
    let place = |item| Place {
        file: PathBuf::from("story"),
        document: 1,
        item: Some(item),
    };
    let sets = [OLD, NEW].into_iter().enumerate();
    sets.map(|(item, name)| Document {
        place: place(item),
        object: replica_set(name),
    })
    .collect()
}

/// Tells it.
pub(super) async fn tell(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    scale_up(director).await?;
    lose_pods(director).await?;
    lose_a_node(director).await?;
    meet_a_quota(director).await?;
    scale_down(director).await
}

/// Brings what is in the cluster to its size.
pub(super) async fn bring_to_size(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let count = |cluster: &mut Cluster| {
        Ok(format!(
            "{} ReplicaSets are there",
            cluster.objects(Kind::ReplicaSet).count()
        ))
    };
    director
        .step("bring everything to its size", count, |cluster, _| {
            all_settled(cluster)
        })
        .await
}

async fn scale_up(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        cluster.scale(NAMESPACE, OLD, 6)?;
        cluster.scale(NAMESPACE, NEW, 4)?;
        Ok(format!(
            "{OLD} 0 → 6 and {NEW} 0 → 4, both of Deployment web"
        ))
    };
    director
        .step("scale up", act, |cluster, _| all_settled(cluster))
        .await
}

async fn lose_pods(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let deleted = pick(cluster, OLD, 0)?;
        let evicted = pick(cluster, NEW, 0)?;
        cluster.delete(Kind::Pod, NAMESPACE, &deleted, &DeleteOptions::default())?;
        cluster.fail_pod(NAMESPACE, &evicted, "Evicted")?;
        Ok(format!(
            "someone deletes {deleted}, and {evicted} is evicted"
        ))
    };
    director
        .step("lose pods", act, |cluster, _| all_settled(cluster))
        .await
}

/// The pods of a node that is away are replaced at once, but none can say that they have ended until it is back.
async fn lose_a_node(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let pods = scene::active_on(cluster, NODE);
        cluster.fail_node(NODE)?;
        Ok(format!("{NODE} and its {pods} pods stop to answer"))
    };
    let is_reached =
        |cluster: &Cluster, _| all_served(cluster) && scene::active_on(cluster, NODE) == 0;
    director.step("lose a node", act, is_reached).await?;
    let act = |cluster: &mut Cluster| {
        let going: i64 = scene::standings(cluster).iter().map(|it| it.going).sum();
        cluster.recover_node(NODE)?;
        Ok(format!(
            "{NODE} answers again and ends the {going} pods that were replaced"
        ))
    };
    director
        .step("get it back", act, |cluster, _| all_settled(cluster))
        .await
}

/// Two pods fit the quota, two do not; then it is raised.
async fn meet_a_quota(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let room = scene::pods(cluster) + 2;
        cluster.create(json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": NAMESPACE, "name": QUOTA},
            "spec": {"hard": {"pods": room.to_string()}},
        }))?;
        cluster.scale(NAMESPACE, NEW, 8)?;
        Ok(format!("{NEW} 4 → 8 under a quota of {room} pods"))
    };
    let is_reached = |cluster: &Cluster, _| {
        scene::standings(cluster)
            .iter()
            .any(|it| it.failure.is_some() && it.ready == 6)
    };
    director.step("meet a quota", act, is_reached).await?;
    let failure = director.failure().unwrap_or_default();
    director.say(&format!("  {NEW} says: {failure}"))?;
    let act = |cluster: &mut Cluster| {
        let patch = json!({"spec": {"hard": {"pods": "50"}}});
        cluster.patch(Kind::ResourceQuota, NAMESPACE, QUOTA, &patch)?;
        Ok("the quota is raised to 50 pods".to_owned())
    };
    let is_reached = |cluster: &Cluster, _| {
        all_settled(cluster)
            && scene::standings(cluster)
                .iter()
                .all(|it| it.failure.is_none())
    };
    director.step("raise the quota", act, is_reached).await
}

/// Makes pods differ, waits until the server has seen it, and scales down, so that each rule has something to say.
async fn scale_down(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let [cheap, unready] = [pick(cluster, NEW, 1)?, pick(cluster, NEW, 2)?];
        let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-10"}}});
        cluster.patch(Kind::Pod, NAMESPACE, &cheap, &cost)?;
        let status = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        cluster.set_pod_status(NAMESPACE, &unready, &status)?;
        Ok(format!(
            "{cheap} gets a deletion cost of -10, {unready} fails its readiness probe"
        ))
    };
    // The pods' stream is in order: a status that counts one ready pod less says that all of this was seen.
    let is_reached = |cluster: &Cluster, _| scene::standings(cluster).iter().all(|it| it.told);
    director.step("let pods differ", act, is_reached).await?;
    let act = |cluster: &mut Cluster| {
        cluster.scale(NAMESPACE, NEW, 3)?;
        cluster.scale(NAMESPACE, OLD, 4)?;
        Ok(format!(
            "{NEW} 8 → 3 and {OLD} 6 → 4; each victim with the rule that chose it:"
        ))
    };
    let is_reached = |cluster: &Cluster, victims| all_settled(cluster) && victims >= 7;
    director.step("scale down", act, is_reached).await
}

/// Returns the name of a ready pod of a ReplicaSet.
fn pick(cluster: &Cluster, set: &str, index: usize) -> Result<String, ApiError> {
    let mut ready = scene::ready_pods(cluster, set);
    if index < ready.len() {
        return Ok(ready.swap_remove(index));
    }
    Err(ApiError::internal(format!(
        "{set} has {} ready pods",
        ready.len()
    )))
}

fn replica_set(name: &str) -> Value {
    let labels = json!({"app": "web", "pod-template-hash": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "namespace": NAMESPACE,
            "name": name,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": "4a6e91de-5f0c-4a3f-9a53-6ab0ffd3a1c2",
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": format!("registry.example/{name}")}]},
            },
        },
    })
}
