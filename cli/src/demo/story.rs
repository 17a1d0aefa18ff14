//! The story of a demonstration without files: what a Deployment amid an update goes through on a bad day.

use agent_fake::{ApiError, Cluster, DeleteOptions, Kind};
use serde_json::json;

use super::{
    beginning::{NAMESPACE, NEW, OLD},
    director::{Director, Step},
    scene::{self, all_served, all_settled},
};
use crate::exit::Failure;

/// The node that is lost and comes back.
const NODE: &str = "node-b";
const QUOTA: &str = "pods";
const ALL_READY: &str = "every pod that is wanted is ready";

/// Tells it.
pub(super) async fn tell(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    scale_down(director).await?;
    scale_up(director).await?;
    lose_pods(director).await?;
    lose_a_node(director).await?;
    meet_a_quota(director).await
}

/// Brings what is in the cluster to its size.
pub(super) async fn bring_to_size(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let count = |cluster: &mut Cluster| {
        let count = cluster.objects(Kind::ReplicaSet).count();
        Ok(format!("the cluster starts with {count} ReplicaSets"))
    };
    let step = Step {
        title: "bring everything to its size",
        reached: ALL_READY,
    };
    director
        .step(step, count, |cluster, _| all_settled(cluster))
        .await
}

/// Seven pods that differ, each victim by another rule. The server is asked first, and does what it answered.
async fn scale_down(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    const REPLICAS: i32 = 2;
    let is_seen = |cluster: &Cluster, _| scene::standings(cluster).iter().all(|it| it.told);
    director.until("begin", is_seen).await?;
    director.name("which pods would go?");
    director.say(&format!(
        "\nReplicaSet {OLD} has 7 pods. Which would go if it were scaled to {REPLICAS}?"
    ))?;
    let predicted = director.preview(OLD, REPLICAS).await?;
    let act = |cluster: &mut Cluster| {
        cluster.scale(NAMESPACE, OLD, REPLICAS)?;
        Ok(format!("{OLD} is scaled from 7 to {REPLICAS} replicas"))
    };
    let step = Step {
        title: "scale down",
        reached: "the surplus pods are gone",
    };
    let count = predicted.len();
    let is_reached = |cluster: &Cluster, deletes: i32| {
        all_settled(cluster) && usize::try_from(deletes).is_ok_and(|deletes| deletes >= count)
    };
    director.step(step, act, is_reached).await?;
    let same = director.victims() == predicted;
    director.say(match same {
        true => "  These are the pods that the server had named.",
        false => "  These are not the pods that the server had named: something changed meanwhile.",
    })
}

async fn scale_up(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        cluster.scale(NAMESPACE, NEW, 4)?;
        Ok(format!("{NEW} is scaled from 0 to 4 replicas"))
    };
    let step = Step {
        title: "scale up",
        reached: ALL_READY,
    };
    director
        .step(step, act, |cluster, _| all_settled(cluster))
        .await
}

async fn lose_pods(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let [deleted, evicted] = [pick(cluster, NEW, "node-a")?, pick(cluster, NEW, "node-c")?];
        cluster.delete(Kind::Pod, NAMESPACE, &deleted, &DeleteOptions::default())?;
        cluster.fail_pod(NAMESPACE, &evicted, "Evicted")?;
        Ok(format!(
            "pod {deleted} is deleted by hand, pod {evicted} is evicted"
        ))
    };
    let step = Step {
        title: "lose pods",
        reached: "both are replaced",
    };
    director
        .step(step, act, |cluster, _| all_settled(cluster))
        .await
}

/// The pods of a node that is away are replaced at once, but none can report that it has stopped until the node is back.
async fn lose_a_node(director: &mut Director<'_, '_>) -> Result<(), Failure> {
    let act = |cluster: &mut Cluster| {
        let pods = scene::active_on(cluster, NODE);
        cluster.fail_node(NODE)?;
        Ok(format!("{NODE} goes down, and {pods} pods with it"))
    };
    let is_reached =
        |cluster: &Cluster, _| all_served(cluster) && scene::active_on(cluster, NODE) == 0;
    let step = Step {
        title: "lose a node",
        reached: "its pods are replaced on other nodes",
    };
    director.step(step, act, is_reached).await?;
    let act = |cluster: &mut Cluster| {
        let going: i64 = scene::standings(cluster).iter().map(|it| it.going).sum();
        cluster.recover_node(NODE)?;
        Ok(format!(
            "{NODE} is back, and stops the {going} pods that were replaced"
        ))
    };
    let step = Step {
        title: "get the node back",
        reached: "no pod is left over",
    };
    director
        .step(step, act, |cluster, _| all_settled(cluster))
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
        Ok(format!(
            "{NEW} is scaled from 4 to 8 replicas; a quota allows {room} pods in all"
        ))
    };
    let is_reached = |cluster: &Cluster, _| {
        let standings = scene::standings(cluster);
        standings
            .iter()
            .any(|it| it.failure.is_some() && it.ready == 6)
    };
    let step = Step {
        title: "meet a quota",
        reached: "6 of 8 pods are ready, and the server goes on trying, less and less often",
    };
    director.step(step, act, is_reached).await?;
    let refusal = director.failure().unwrap_or_default();
    director
        .line(&format!("The cluster refused the others: {refusal}"))
        .await?;
    let act = |cluster: &mut Cluster| {
        let patch = json!({"spec": {"hard": {"pods": "50"}}});
        cluster.patch(Kind::ResourceQuota, NAMESPACE, QUOTA, &patch)?;
        // A change of the ReplicaSet ends its backoff; left alone, it would try again by itself, but later and later.
        cluster.scale(NAMESPACE, NEW, 9)?;
        Ok(format!(
            "the quota is raised to 50 pods, and {NEW} is scaled to 9 replicas"
        ))
    };
    let is_reached = |cluster: &Cluster, _| {
        all_settled(cluster)
            && scene::standings(cluster)
                .iter()
                .all(|it| it.failure.is_none())
    };
    let step = Step {
        title: "raise the quota",
        reached: ALL_READY,
    };
    director.step(step, act, is_reached).await
}

/// Returns the name of a ready pod of a ReplicaSet on a node: where pods are is the same in every run.
fn pick(cluster: &Cluster, set: &str, node: &str) -> Result<String, ApiError> {
    scene::ready_pod_on(cluster, set, node)
        .ok_or_else(|| ApiError::internal(format!("{set} has no ready pod on {node}")))
}

#[cfg(test)]
mod tests {
    use std::io;

    use decree_agent::{Mode, manifest};
    use runtime::ListenAddr;

    use super::*;
    use crate::{
        demo::{Pace, Site, Stage, on_threads},
        streams::Io,
    };

    const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/web.yaml");

    #[test]
    fn pods_that_come_before_the_first_step_begins_are_a_part_of_it() {
        let objects = manifest::read(&[WEB.into()]).expect("valid");
        let mut out = Vec::new();
        let mut io = Io {
            stdin: &mut io::empty(),
            stdout: &mut out,
            stderr: &mut io::sink(),
            terminal: false,
            utf8: true,
        };
        let free = "127.0.0.1:0".parse().expect("an address");
        let site = Site {
            listen: free,
            admin: free,
            agent_admin: ListenAddr::Off,
            seed: 0,
            otlp: otlp::OtlpArgs::default(),
        };
        let told = on_threads(async {
            let stage = Stage::open(site, Mode::Enforce, objects, |_| Ok(())).await?;
            let deadline = std::time::Duration::from_secs(60);
            let mut director = Director::new(stage, Pace::default(), deadline, &mut io);
            director
                .until("begin", |cluster, _| all_settled(cluster))
                .await?;
            bring_to_size(&mut director).await?;
            director.sum_up()?;
            director.close().await
        });
        told.expect("it reaches its goal");
        let told = String::from_utf8(out).expect("only text was written");
        assert_eq!(told.matches(": create ").count(), 2, "{told}");
        assert!(told.contains("s   23        0         0"), "{told}");
    }
}
