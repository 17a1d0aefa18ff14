//! `helm test`: its pod is admitted where pods are restricted, and its command passes with the credentials and variables of the
//! pod.

use serde_json::json;
use tests::real::{Api, ApiServer, DecisionServer, Patch, User};

use crate::{
    checked::{Check, detail},
    helm::succeeds,
    rendered::{CUSTOM_SYSTEM, Rendered, SYSTEM},
};

const CHART: &str = "deploy/helm/decree";

/// Values of the chart, the namespace, the number of permissions of the agent, and whether there is a server to ask.
const RELEASES: [(&str, &str, usize, bool); 7] = [
    ("", SYSTEM, 20, false),
    ("workload=StatefulSet", SYSTEM, 20, false),
    ("agent.args={--mode=shadow}", SYSTEM, 5, false),
    ("topology=separate", SYSTEM, 20, true),
    ("topology=separate,tokens.enabled=true", SYSTEM, 20, true),
    (
        "topology=separate,agent.replicas=8,shards=4,autoscaler.enabled=true",
        SYSTEM,
        22,
        true,
    ),
    (
        "workload=StatefulSet,customResource=true",
        CUSTOM_SYSTEM,
        16,
        false,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn command_of_helm_test_passes_in_each_topology() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    let server = DecisionServer::start();
    let helm = |args: &[&str]| succeeds(args, Some(cluster.kubeconfig(User::Admin)));
    for (values, namespace, permissions, asks_server) in RELEASES {
        let place = ["-n", namespace];
        let chart = ["decree", CHART, "--set", values];
        let install = [&["install", "--create-namespace"], &chart[..], &place].concat();
        if helm(&install).is_none() {
            return;
        }
        let test = ["--show-only", "templates/tests/check.yaml"];
        let test = [&["template"], &chart[..], &place, &test].concat();
        let rendered = Rendered::read(&helm(&test).expect("helm is there"));
        let pod = rendered.one("Pod", "decree-check");
        assert_eq!(pod["spec"]["serviceAccountName"], "decree-agent");
        is_admitted(&admin, pod, namespace).await;

        let account = cluster.service_account(namespace, "decree-agent").await;
        let found = Check::of_pod(pod, &account, &server.url()).passes().await;
        let all = format!("all {permissions} are granted");
        assert_eq!(detail(&found, "permissions"), all, "{values}");
        let asked = found.iter().any(|it| it["check"] == "server");
        assert_eq!(asked, asks_server, "{values}");
        helm(&[&["uninstall", "decree"], &place[..]].concat()).expect("helm is there");
    }
}

/// Creates the pod as a dry run, in its namespace with the strictest level of Pod Security.
async fn is_admitted(admin: &Api, pod: &serde_json::Value, namespace: &str) {
    let restricted =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let path = format!("/api/v1/namespaces/{namespace}");
    let labelled = admin.patch(&path, Patch::Merge, &restricted).await;
    labelled.expect("helm made it");
    let pods = format!("{path}/pods?dryRun=All&fieldValidation=Strict");
    let created = admin.create(&pods, pod).await;
    created.unwrap_or_else(|refusal| panic!("{refusal:?}: {pod:#}"));
}
