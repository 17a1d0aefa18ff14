//! The owner of a pod.

use serde_json::{Value, json};
use tests::real::{Attended, Namespace, Sightings};

use crate::{acts, another, objects, stand::Stand};

/// References of a pod, by its ReplicaSet.
type References = fn(&Value) -> Value;

/// The names of ReplicaSets, the references of a pod from before the agent, the references then, and the number of pods.
const FOUND: [(&str, References, References, usize); 4] = [
    (
        "plain",
        |set| json!([reference(set)]),
        |set| json!([controller(set)]),
        1,
    ),
    ("orphan", |_| json!([]), |set| json!([controller(set)]), 1),
    // Not even `blockOwnerDeletion` is added.
    ("ours", without_block, without_block, 1),
    (
        "of-another",
        |_| json!([controller(&stranger())]),
        |_| json!([controller(&stranger())]),
        2,
    ),
];

fn without_block(set: &Value) -> Value {
    let mut reference = reference(set);
    reference["controller"] = true.into();
    json!([reference])
}

#[tokio::test]
async fn pods_from_before_the_agent_get_their_controller_unless_they_have_one() {
    let stand = tests::or_skip!(Stand::new("found").await);
    let namespace = &stand.namespace;
    let mut found = Vec::new();
    for (name, before, ..) in FOUND {
        let set = acts::create_set(namespace, &another::set(name, 1)).await;
        let mut pod = objects::pod(&format!("found-{name}"));
        pod["metadata"]["labels"] = json!({"app": name});
        pod["metadata"]["ownerReferences"] = before(&set);
        let pod = acts::create_pod(namespace, &pod).await;
        found.push((set, pod));
    }
    let _attendance = stand.attend().await;
    for ((name, before, after, count), (set, pod)) in FOUND.into_iter().zip(found) {
        acts::status_becomes(namespace, name, &json!({"replicas": 1})).await;
        acts::pods_become_so(namespace, name, |pods| {
            let of_it = |it: &&Value| it["metadata"]["labels"]["app"] == name;
            pods.iter().filter(of_it).count() == count
        })
        .await;
        let now = acts::pod_becomes(namespace, &pod, "there", |_| true).await;
        if before(&set) == after(&set) {
            assert_eq!(now, pod, "{name}");
        }
        assert_eq!(*references(&now), after(&set), "{name}");
    }
}

#[tokio::test]
async fn pods_that_lost_their_controller_get_it_again_beside_other_references() {
    let foreign = |_: &Value| json!([reference(&stranger())]);
    let both = |set: &Value| json!([reference(&stranger()), controller(set)]);
    let plain = |set: &Value| json!([reference(set)]);
    let one = |set: &Value| json!([controller(set)]);
    let cases: [(&str, References, References); 2] = [
        ("second-reference", foreign, both),
        ("single-reference", plain, one),
    ];
    for (name, put, after) in cases {
        let namespace = tests::or_skip!(Attended::namespace(name).await);
        let sightings = Sightings::begin(&namespace);
        let set = acts::create_set(&namespace, &objects::replica_set("web", 1)).await;
        acts::status_becomes(&namespace, "web", &json!({"replicas": 1})).await;
        let pods = acts::pods_become(&namespace, 1).await;
        let put = json!({"metadata": {"ownerReferences": put(&set)}});
        acts::patch_pod(&namespace, &pods[0], &put).await;
        let pod =
            acts::pod_becomes(&namespace, &pods[0], "adopted", |pod| is_owned(pod, &set)).await;
        // Their order is the API server's.
        let sorted = |list: &Value| {
            let mut list = list.as_array().expect("there are some").clone();
            list.sort_by_key(|one| one["name"].to_string());
            list
        };
        assert_eq!(sorted(references(&pod)), sorted(&after(&set)), "{name}");
        sightings.reach(1).await;
        assert_eq!(sightings.count(), 1, "it was not replaced");
    }
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
