//! A create has a timeout, on which decision 11 depends: the API server ends it then, and a create that etcd has still stored is seen soon.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tests::real::{ApiServer, Namespace, Refusal};

use crate::{acts, objects};

const CREATE_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout of a second create beside each: nearly the default of the API server.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of writes by etcd before it sleeps again.
const WRITES: u32 = 10;

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
    namespace.create(&path, &objects::pod(name)).await
}

/// Makes etcd write several times.
async fn etcd_goes_on(namespace: &Namespace, round: u32) {
    let path = format!("/api/v1/namespaces/{}", namespace.name());
    for write in 0..WRITES {
        let note = json!({"metadata": {"annotations": {"write": format!("{round}-{write}")}}});
        namespace.change(&path, &note).await;
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
