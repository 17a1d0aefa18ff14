//! The webhook for evictions of the examples. It runs on this machine, with the permissions of its manifest, as docs/drains.md installs it.

use std::{fs, path::Path, process::Command, time::Duration};

use agent_fake::is_ready;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    real::{Agent, ApiServer, DecisionServer, Namespace, NodeCluster, Nodes, User, node_of},
    running::{Running, Voice},
    tools,
};

use crate::{
    acts,
    kubectl::{Kubectl, shown},
    manifests::{containers, pod_is_admitted},
    rendered::SYSTEM,
};

const NAME: &str = "decree-eviction-webhook";
const READY_WITHIN: Duration = Duration::from_secs(4);
/// Before each limit.
const LONG_AGO: &str = "2026-05-01T12:00:00+00:00";

/// Installs the webhook with the commands of docs/drains.md, and starts it. Its certificate is in the folder, with its credentials.
async fn install(cluster: &ApiServer, kubectl: &Path, folder: &Path) -> Running {
    let admin = cluster.admin().await;
    Namespace::create(admin.clone(), SYSTEM).await;
    let restricted = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let labels = json!({"metadata": {"labels": restricted}});
    let path = format!("/api/v1/namespaces/{SYSTEM}");
    admin.change(&path, &labels).await;
    let here = folder.to_str().expect("it is text");
    for block in shown("evictions_wait_for_replacements_without_budget_and_cordon") {
        let text = block.text.replace("tls.", &format!("{here}/tls."));
        let text = text.replace("subjectAltName=", "subjectAltName=IP:127.0.0.1,");
        Kubectl::of(kubectl, cluster).shell(&text);
    }
    let kubeconfig = fs::read(cluster.service_account(SYSTEM, NAME).await);
    let kubeconfig: Value =
        serde_json::from_slice(&kubeconfig.expect("it was written")).expect("JSON");
    let token = kubeconfig["users"][0]["user"]["token"].as_str();
    fs::write(folder.join("token"), token.expect("it is text")).expect("there is room");
    fs::copy(cluster.ca(), folder.join("ca.crt")).expect("there is room");
    let mut command = Command::new("python3");
    command.arg(binaries::checkout().join("examples/eviction-webhook/webhook.py"));
    command.args([
        "--port=0",
        "--tls",
        here,
        "--credentials",
        here,
        "--api",
        &cluster.url(),
    ]);
    let webhook = Running::start(command, Voice::Stdout);
    let port = webhook.wait_for("its port", |lines| {
        let mut lines = lines.iter();
        lines.find_map(|line| line.strip_prefix("listens on ").map(str::to_owned))
    });
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{NAME}");
    let mut configuration = admin.get(&path).await.expect("the commands create it");
    let hook = &mut configuration["webhooks"][0];
    let authority = &hook["clientConfig"]["caBundle"];
    let url = format!("https://127.0.0.1:{port}");
    hook["clientConfig"] = json!({"url": url, "caBundle": authority});
    // This machine is busy.
    hook["timeoutSeconds"] = json!(30);
    admin
        .replace(&path, &configuration)
        .await
        .expect("it is valid");
    webhook
}

/// Evicts a pod, with the options of its deletion. Returns the refusal, empty without one.
async fn evict(nodes: &Nodes, pod: &Value, options: &Value, query: &str) -> String {
    let name = acts::name(pod);
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options,
    });
    let path = format!("{}/eviction{query}", nodes.namespace().pod(name));
    let Err(refusal) = nodes.namespace().create(&path, &eviction).await else {
        return String::new();
    };
    assert_eq!((refusal.code, &*refusal.reason), (429, "TooManyRequests"));
    refusal.message
}

async fn is_refused(nodes: &Nodes, pod: &Value) {
    let refusal = evict(nodes, pod, &Value::Null, "").await;
    assert!(refusal.contains(acts::name(pod)), "{refusal}");
}

/// Evicts a pod, which is allowed, and returns the next one.
async fn is_evicted(nodes: &Nodes, pod: &Value, why: &str) -> Value {
    assert_eq!(evict(nodes, pod, &Value::Null, "").await, "", "{why}");
    replaced(nodes, pod).await
}

/// Waits until a ready pod is the only one and not `pod`, and returns it.
async fn replaced(nodes: &Nodes, pod: &Value) -> Value {
    let is_other = |it: &Value| is_ready(it) && it["metadata"]["uid"] != pod["metadata"]["uid"];
    let is_so = |pods: &[Value]| matches!(pods, [it] if is_other(it));
    nodes.become_so("replaced", is_so).await;
    nodes.active().remove(0)
}

async fn leaving(nodes: &Nodes, pod: &Value) -> Value {
    let path = nodes.namespace().pod(acts::name(pod));
    let pod = nodes.namespace().get(&path).await.expect("it stays");
    pod["metadata"]["annotations"]["decree.dev/leaving"].clone()
}

fn annotations(name: &str, value: &Value) -> Value {
    json!({"metadata": {"annotations": {format!("decree.dev/{name}"): value}}})
}

/// Runs a pod without a budget, and returns it.
async fn run(nodes: &Nodes, kind: &str) -> Value {
    nodes.run(kind, (1, 1, 1), "true").await;
    let budget = nodes
        .namespace()
        .path("/apis/policy/v1", "poddisruptionbudgets", "web");
    nodes.namespace().remove(&budget, &json!({})).await;
    replaced(nodes, &Value::Null).await
}

#[tokio::test(flavor = "multi_thread")]
async fn evictions_wait_for_replacements_without_budget_and_cordon() {
    tests::or_skip!(tools::openssl());
    let kubectl = tests::or_skip!(tools::kubectls()).first();
    let cluster = tests::or_skip!(NodeCluster::start("").await);
    let folder = TempDir::with_prefix("decree-webhook-").expect("there is room");
    let kubectl = kubectl.expect("the newest");
    let webhook = install(cluster.server(), kubectl, folder.path()).await;
    manifest_fits(cluster.server()).await;
    let server = DecisionServer::start();
    let kubeconfig = cluster.server().kubeconfig(User::Admin);
    let flags = "--leader-elect=false --nodes --namespace=drained --namespace=bare";
    let flags: Vec<_> = flags.split(' ').collect();
    let agent = Agent::start(&server, &kubeconfig, &flags);
    drained(&cluster.nodes("drained", 1, READY_WITHIN).await).await;

    let nodes = &cluster.nodes("bare", 1, READY_WITHIN).await;
    let pod = run(nodes, "ReplicaSet").await;
    agent.kill();
    is_refused(nodes, &pod).await;
    let since = leaving(nodes, &pod).await;
    is_refused(nodes, &pod).await;
    assert_eq!(
        leaving(nodes, &pod).await,
        since,
        "the limit counts from the first eviction"
    );
    let namespace = nodes.namespace();
    acts::patch_pod(namespace, &pod, &annotations("leaving", &json!(LONG_AGO))).await;
    assert_eq!(
        evict(nodes, &pod, &Value::Null, "").await,
        "",
        "the agent is stopped"
    );

    let _agent = Agent::start(&server, &kubeconfig, &flags);
    let pod = replaced(nodes, &pod).await;
    acts::patch_pod(namespace, &pod, &annotations("leaving", &json!("false"))).await;
    let pod = is_evicted(nodes, &pod, "somebody wishes so").await;
    let unready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
    acts::set_pod_status(namespace, &pod, &unready).await;
    let pod = is_evicted(nodes, &pod, "it is not ready").await;
    let set = namespace.replica_set("web");
    let off = annotations("surge-on-eviction", &Value::Null);
    namespace.change(&set, &off).await;
    let pod = is_evicted(nodes, &pod, "its ReplicaSet has no surge").await;
    let on = annotations("surge-on-eviction", &json!("25%"));
    namespace.change(&set, &on).await;
    webhook.kill();
    is_evicted(nodes, &pod, "the webhook is down").await;
}

/// Drains the node of a Deployment, and evicts the next pod from a node without a cordon.
async fn drained(nodes: &Nodes) {
    let pod = run(nodes, "Deployment").await;
    for (options, query) in [(json!({}), "?dryRun=All"), (json!({"dryRun": ["All"]}), "")] {
        assert_ne!(evict(nodes, &pod, &options, query).await, "");
    }
    assert_eq!(leaving(nodes, &pod).await, Value::Null, "after dry runs");
    let drain = nodes.drain(node_of(&pod), "10m").await.expect("it ends");
    let said = String::from_utf8_lossy(&drain.stderr);
    let is_refused_first = said.contains("Decree creates a replacement");
    assert!(drain.status.success() && is_refused_first, "{said}");
    let pod = replaced(nodes, &pod).await;
    is_refused(nodes, &pod).await;
    replaced(nodes, &pod).await;
    assert_eq!(nodes.judged().dips, [""; 0]);
}

/// The restricted namespace admits the pods, and the certificate of cert-manager has the names of the manifest.
async fn manifest_fits(cluster: &ApiServer) {
    let admin = cluster.admin().await;
    let path = format!("/apis/apps/v1/namespaces/{SYSTEM}/deployments/{NAME}");
    let deployment = admin.get(&path).await.expect("the commands create it");
    pod_is_admitted(&admin, &deployment, NAME).await;
    let pod = &deployment["spec"]["template"]["spec"];
    let port = &containers(pod).next().expect("one")["readinessProbe"]["httpGet"]["port"];
    let path = format!("/api/v1/namespaces/{SYSTEM}/services/{NAME}");
    let service = admin.get(&path).await.expect("the commands create it");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], *port);
    assert_eq!(
        service["spec"]["selector"],
        deployment["spec"]["selector"]["matchLabels"]
    );
    let file = binaries::checkout().join("examples/eviction-webhook/certificate.yaml");
    let file = fs::read_to_string(file).expect("it is in the checkout");
    let secret = pod["volumes"][1]["secret"]["secretName"]
        .as_str()
        .expect("it has one");
    for line in [
        format!("secretName: {secret}"),
        format!("- {NAME}.{SYSTEM}.svc"),
    ] {
        assert!(file.contains(&line), "{line}");
    }
}
