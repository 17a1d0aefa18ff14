//! The owner of a pod.

use serde_json::{Value, json};
use tests::real::{Attended, Namespace, Sightings};

use crate::{
    acts, objects,
    stand::{Attendance, Stand},
};

/// A ReplicaSet of one pod, and a pod from before the agent.
struct Found {
    stand: Stand,
    set: Value,
    pod: Value,
}

// === impl Found ===

impl Found {
    /// Makes them, the pod with references that may name the ReplicaSet.
    async fn new(name: &str, references: impl Fn(&Value) -> Value) -> Option<Self> {
        let stand = Stand::new(name).await?;
        let set = acts::create_set(&stand.namespace, &objects::replica_set("web", 1)).await;
        let mut pod = objects::pod("found");
        pod["metadata"]["ownerReferences"] = references(&set);
        let pod = acts::create_pod(&stand.namespace, &pod).await;
        Some(Self { stand, set, pod })
    }

    /// Starts an agent, and returns the pod when the ReplicaSet has converged.
    async fn meet(&self, pods: usize) -> (Value, Attendance) {
        let attendance = self.stand.attend().await;
        let namespace = &self.stand.namespace;
        acts::status_becomes(namespace, "web", &json!({"replicas": 1})).await;
        acts::pods_become(namespace, pods).await;
        let pod = acts::pod_becomes(namespace, &self.pod, "there", |_| true).await;
        (pod, attendance)
    }
}

#[tokio::test]
async fn a_reference_without_controller_is_made_the_controller() {
    let plain = |set: &Value| json!([reference(set)]);
    let found = tests::or_skip!(Found::new("upgraded", plain).await);
    let (pod, _attendance) = found.meet(1).await;
    assert_eq!(references(&pod), &json!([controller(&found.set)]));
}

#[tokio::test]
async fn an_orphan_that_matches_gets_the_controller() {
    let found = tests::or_skip!(Found::new("orphan", |_| json!([])).await);
    let (pod, _attendance) = found.meet(1).await;
    assert_eq!(references(&pod), &json!([controller(&found.set)]));
}

#[tokio::test]
async fn a_pod_that_has_this_controller_already_is_left_unchanged() {
    let already = |set: &Value| {
        let mut reference = reference(set);
        reference["controller"] = true.into();
        json!([reference])
    };
    let found = tests::or_skip!(Found::new("already-ours", already).await);
    let (pod, _attendance) = found.meet(1).await;
    assert_eq!(pod, found.pod, "not even blockOwnerDeletion is added");
}

#[tokio::test]
async fn a_pod_of_another_controller_is_left_unchanged() {
    let others = |_: &Value| json!([controller(&stranger())]);
    let found = tests::or_skip!(Found::new("of-another", others).await);
    let (pod, _attendance) = found.meet(2).await;
    assert_eq!(pod, found.pod);
}

#[tokio::test]
async fn a_pod_with_a_foreign_reference_gets_the_controller_as_its_second() {
    let foreign = json!([reference(&stranger())]);
    let (set, pod) = tests::or_skip!(adopts_again("second-reference", |_| foreign.clone()).await);
    let mut both = vec![reference(&stranger()), controller(&set)];
    let mut has = references(&pod).as_array().expect("there are some").clone();
    // Their order is the API server's.
    let by_name = |one: &Value| one["name"].to_string();
    both.sort_by_key(by_name);
    has.sort_by_key(by_name);
    assert_eq!(has, both);
}

#[tokio::test]
async fn a_reference_that_lost_its_controller_becomes_the_one_controller_again() {
    let plain = |set: &Value| json!([reference(set)]);
    let (set, pod) = tests::or_skip!(adopts_again("single-reference", plain).await);
    assert_eq!(references(&pod), &json!([controller(&set)]));
}

/// Replaces the references of a ReplicaSet's only pod, and returns the pod before and after it gets its controller again.
async fn adopts_again(name: &str, put: impl Fn(&Value) -> Value) -> Option<(Value, Value)> {
    let namespace = Attended::namespace(name).await?;
    let sightings = Sightings::begin(&namespace);
    let set = acts::create_set(&namespace, &objects::replica_set("web", 1)).await;
    acts::status_becomes(&namespace, "web", &json!({"replicas": 1})).await;
    let pods = acts::pods_become(&namespace, 1).await;
    let put = json!({"metadata": {"ownerReferences": put(&set)}});
    acts::patch_pod(&namespace, &pods[0], &put).await;
    let pod = acts::pod_becomes(&namespace, &pods[0], "adopted", |pod| is_owned(pod, &set)).await;
    sightings.reach(1).await;
    assert_eq!(sightings.count(), 1, "it was not replaced");
    Some((set, pod))
}

#[tokio::test]
async fn a_pod_labelled_away_is_released_and_adopted_when_it_is_back() {
    let relabelled = tests::or_skip!(Relabelled::new("back-and-kept").await);
    let Relabelled {
        namespace,
        set,
        pod,
    } = &relabelled;
    // This pod ranks last for deletion, so another one is the victim.
    let ready = objects::ready_since("2026-01-01T00:00:00Z", 0);
    acts::set_pod_status(namespace, pod, &ready).await;
    let back = json!({"metadata": {"labels": objects::labels()}});
    acts::patch_pod(namespace, pod, &back).await;
    acts::pod_becomes(namespace, pod, "adopted", |pod| is_owned(pod, set)).await;
    let pods = acts::pods_become(namespace, 2).await;
    assert!(acts::names(&pods).contains(&acts::name(pod)));
    let one = json!({"replicas": 2, "readyReplicas": 1});
    acts::status_becomes(namespace, "web", &one).await;
}

#[tokio::test]
async fn a_pod_labelled_away_is_released_and_deleted_as_surplus_when_it_is_back() {
    let relabelled = tests::or_skip!(Relabelled::new("back-and-surplus").await);
    let Relabelled { namespace, pod, .. } = &relabelled;
    let back = json!({"metadata": {
        "labels": objects::labels(),
        "annotations": {objects::DELETION_COST: "-1"},
    }});
    acts::patch_pod(namespace, pod, &back).await;
    let pods = acts::pods_become(namespace, 2).await;
    assert!(!acts::names(&pods).contains(&acts::name(pod)));
    acts::status_becomes(namespace, "web", &json!({"replicas": 2})).await;
}

/// A ReplicaSet of two pods, and its former pod that was labeled away.
struct Relabelled {
    namespace: Namespace,
    set: Value,
    pod: Value,
}

// === impl Relabelled ===

impl Relabelled {
    async fn new(name: &str) -> Option<Self> {
        let namespace = Attended::namespace(name).await?;
        let set = acts::create_set(&namespace, &objects::replica_set("web", 2)).await;
        acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
        let pods = acts::pods_become(&namespace, 2).await;
        let away = json!({"metadata": {"labels": {"app": "debugged"}}});
        acts::patch_pod(&namespace, &pods[0], &away).await;
        let released = |pod: &Value| references(pod).is_null();
        let pod = acts::pod_becomes(&namespace, &pods[0], "released", released).await;
        let pods = acts::pods_become(&namespace, 3).await;
        assert_eq!(pods.iter().filter(|pod| is_owned(pod, &set)).count(), 2);
        acts::status_becomes(&namespace, "web", &json!({"replicas": 2})).await;
        Some(Self {
            namespace,
            set,
            pod,
        })
    }
}

#[tokio::test]
async fn pods_that_were_there_before_are_adopted_and_the_surplus_is_deleted() {
    let stand = tests::or_skip!(Stand::new("there-before").await);
    let namespace = &stand.namespace;
    let sightings = Sightings::begin(namespace);
    for name in ["one", "two", "three"] {
        acts::create_pod(namespace, &objects::pod(name)).await;
    }
    let set = acts::create_set(namespace, &objects::replica_set("web", 2)).await;
    let _attendance = stand.attend().await;
    acts::status_becomes(namespace, "web", &json!({"replicas": 2})).await;
    let pods = acts::pods_become(namespace, 2).await;
    assert!(pods.iter().all(|pod| is_owned(pod, &set)));
    sightings.reach(3).await;
    assert_eq!(sightings.count(), 3, "none was created");
}

fn stranger() -> Value {
    let uid = "5f0a9a4c-7b6d-4f43-9c41-0c2b8ad2f0e7";
    json!({"metadata": {"name": "a-stranger", "uid": uid}})
}

fn reference(set: &Value) -> Value {
    let (name, uid) = (&set["metadata"]["name"], &set["metadata"]["uid"]);
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid})
}

fn controller(set: &Value) -> Value {
    let mut reference = reference(set);
    reference["controller"] = true.into();
    reference["blockOwnerDeletion"] = true.into();
    reference
}

fn references(pod: &Value) -> &Value {
    &pod["metadata"]["ownerReferences"]
}

fn is_owned(pod: &Value, set: &Value) -> bool {
    let references = references(pod).as_array();
    let mut references = references.into_iter().flatten();
    references.any(|one| one["uid"] == set["metadata"]["uid"] && one["controller"] == true)
}
