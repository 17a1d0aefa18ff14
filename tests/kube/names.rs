//! Names of pods are not reused, and a create has a timeout.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tests::real::{ApiServer, Attended, Namespace, Patch, Refusal};

use crate::{acts, objects};

const SETS: usize = 20;
const REPLICAS: u32 = 5;
/// Of each ReplicaSet: half as many as it replaces at once, so that no create waits for a grant.
const DELETIONS: usize = 10;
const CREATE_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout of a second create beside each: nearly the default of the API server.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of writes by etcd before it sleeps again.
const WRITES: u32 = 10;

#[tokio::test]
async fn names_of_deleted_pods_never_come_back() {
    let namespace = tests::or_skip!(Attended::namespace("names-do-not-return").await);
    for number in 0..SETS {
        let set = format!("web-{number}");
        acts::create_set(&namespace, &objects::replica_set(&set, REPLICAS)).await;
        let mut gone = BTreeSet::new();
        for _ in 0..DELETIONS {
            let pods = others_take_over(&namespace, &set, &gone).await;
            acts::remove_pod(&namespace, &pods[0]).await;
            gone.insert(acts::name(&pods[0]).to_owned());
        }
        others_take_over(&namespace, &set, &gone).await;
    }
}

/// Waits until the ReplicaSet has all its pods and none has the name of one that is gone, and returns them.
async fn others_take_over(namespace: &Namespace, set: &str, gone: &BTreeSet<String>) -> Vec<Value> {
    let first_part = format!("{set}-");
    let mut pods = acts::pods_become_so(namespace, "pods of other names", |pods| {
        let names = acts::names(pods);
        let mut of_set = names.iter().filter(|name| name.starts_with(&first_part));
        of_set.clone().count() == REPLICAS as usize && of_set.all(|name| !gone.contains(*name))
    })
    .await;
    pods.retain(|pod| acts::name(pod).starts_with(&first_part));
    pods
}

#[tokio::test]
async fn pod_with_an_ephemeral_volume_is_replaced_while_its_claim_is_still_there() {
    let namespace = tests::or_skip!(Attended::namespace("ephemeral-claim").await);
    let mut set = objects::replica_set("web", 1);
    set["spec"]["template"]["spec"]["volumes"] = json!([{
        "name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec()}},
    }]);
    acts::create_set(&namespace, &set).await;
    let first = acts::pods_become(&namespace, 1).await.remove(0);
    let claim = create_claim(&namespace, &first).await;
    acts::remove_pod(&namespace, &first).await;
    let second = acts::pods_become_so(&namespace, "replaced", |pods| {
        pods.len() == 1 && pods[0]["metadata"]["uid"] != first["metadata"]["uid"]
    })
    .await
    .remove(0);
    // Only the garbage collector deletes the old claim, and none runs.
    let claims = namespace.path("/api/v1", "persistentvolumeclaims", acts::name(&claim));
    let old = namespace.api().get(&claims).await;
    assert_eq!(old.expect("it is there")["metadata"], claim["metadata"]);
    create_claim(&namespace, &second).await;
}

/// etcd sleeps during a request to store a pod. When it resumes, it may still store the pod, at once or never, even though the
/// API server has given up, and even after a list.
#[tokio::test]
async fn create_is_given_up_at_its_timeout_and_its_effect_is_settled_when_etcd_has_gone_on() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let [namespace, patient] = ["create-timeout", "create-patiently"];
    let namespace = Namespace::create(cluster.admin().await, namespace).await;
    let patient = Namespace::create(cluster.admin().await, patient).await;
    let mut settled = BTreeSet::new();
    for number in 0..10 {
        let name = format!("late-{number}");
        cluster.pause_etcd().await;
        let begun = Instant::now();
        let refusal = tokio::select! {
            biased;
            refusal = create(&namespace, &name, CREATE_TIMEOUT) => refusal,
            refusal = create(&patient, &name, PATIENT_TIMEOUT) => panic!("it is first: {refusal:?}"),
        };
        let (refusal, took) = (refusal.expect_err("etcd sleeps"), begun.elapsed());
        cluster.wake_etcd();
        // Two parts of the API server give up the create at that moment: one answers, and one cuts the answer off.
        let given_up = [(504, "Timeout"), (0, "NoAnswer")];
        let answer = (refusal.code, refusal.reason.as_str());
        assert!(given_up.contains(&answer), "{refusal:?}");
        assert!(CREATE_TIMEOUT <= took, "it took {took:?}");
        // The pods of earlier creates: etcd has written since.
        let mut there = pod_names(&namespace).await;
        there.remove(&name);
        assert!(there.is_superset(&settled), "{settled:?} became {there:?}");
        let late = there.difference(&settled).filter(|it| **it != last(number));
        assert_eq!(late.count(), 0, "{settled:?} became {there:?}");
        settled = there;
        etcd_goes_on(&namespace, number).await;
    }
}

async fn create(namespace: &Namespace, name: &str, timeout: Duration) -> Result<Value, Refusal> {
    let path = format!("{}?timeout={}s", namespace.pod(""), timeout.as_secs());
    namespace.api().create(&path, &objects::pod(name)).await
}

/// Makes etcd write several times.
async fn etcd_goes_on(namespace: &Namespace, round: u32) {
    let path = format!("/api/v1/namespaces/{}", namespace.name());
    for write in 0..WRITES {
        let note = json!({"metadata": {"annotations": {"write": format!("{round}-{write}")}}});
        let written = namespace.api().patch(&path, Patch::Merge, &note).await;
        written.expect("it is there");
    }
}

/// The name of the create before, whose effect is first seen now.
fn last(number: u32) -> String {
    format!("late-{}", number.wrapping_sub(1))
}

async fn pod_names(namespace: &Namespace) -> BTreeSet<String> {
    let pods = namespace.pods().await.expect("it lists");
    pods.iter().map(|pod| acts::name(pod).to_owned()).collect()
}

/// Makes the claim of a pod's volume, named after the pod, as the controller for ephemeral volumes does.
async fn create_claim(namespace: &Namespace, pod: &Value) -> Value {
    let name = acts::name(pod);
    let claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": format!("{name}-scratch"), "ownerReferences": [{
            "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"], "controller": true,
        }]},
        "spec": claim_spec(),
    });
    let path = namespace.path("/api/v1", "persistentvolumeclaims", "");
    let created = namespace.api().create(&path, &claim).await;
    created.expect("no other claim has its name")
}

fn claim_spec() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}
