//! An API server accepts the shipped manifests, and restricted namespaces admit their pods.

use std::fs;

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{Api, ApiServer},
};

use crate::{
    permissions::is_allowed,
    rendered::{CUSTOM_SYSTEM, Rendered, SYSTEM},
};

/// The kustomizations in `deploy/kustomize` that can be applied.
pub(crate) const FOLDERS: [&str; 8] = [
    "base",
    "overlays/all-in-one",
    "overlays/any-node",
    "overlays/high-availability",
    "overlays/sharded",
    "overlays/advise",
    TOKENS,
    CUSTOM,
];

/// The overlay for a custom resource, in a separate namespace.
pub(crate) const CUSTOM: &str = "overlays/custom-resource";

/// The overlays with server and agent in one pod.
const IN_ONE: [&str; 4] = [
    "overlays/all-in-one",
    "overlays/any-node",
    "overlays/advise",
    CUSTOM,
];

/// The permissions of the static pods, and the manifest for `/etc/kubernetes/manifests`.
pub(crate) const STATIC: &str = "../static-pods";

/// The overlay whose agents authenticate with tokens.
pub(crate) const TOKENS: &str = "overlays/high-availability-tokens";

#[tokio::test]
async fn shipped_manifests_are_applied_and_their_pods_admitted() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let admin = server.admin().await;
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        rendered.apply(&admin).await;
        for workload in rendered.workloads() {
            pod_is_admitted(&admin, workload, folder).await;
        }
    }
}

/// Creates the pod of a workload in a dry run, and a pod with more privileges, whose refusal proves that admission checked the first.
pub(crate) async fn pod_is_admitted(admin: &Api, workload: &Value, folder: &str) {
    let name = &workload["metadata"]["name"];
    let template = &workload["spec"]["template"];
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = json!("admitted-");
    let namespace = text_of(&workload["metadata"]["namespace"]);
    let pods = format!("/api/v1/namespaces/{namespace}/pods?fieldValidation=Strict&dryRun=All");
    let created = admin.create(&pods, &pod).await;
    let created = created.unwrap_or_else(|refusal| panic!("{folder}: {name}: {refusal:?}"));
    let selected = &workload["spec"]["selector"]["matchLabels"];
    for (key, value) in selected.as_object().expect("it selects") {
        assert_eq!(created["metadata"]["labels"][key], *value, "{folder}");
    }
    pod["spec"]["securityContext"]["runAsNonRoot"] = json!(false);
    let refusal = admin.create(&pods, &pod).await;
    let refusal = refusal.expect_err("the namespace is restricted");
    assert!(refusal.message.contains("PodSecurity"), "{refusal:?}");
}

#[test]
fn server_has_no_credentials_and_only_the_agent_mounts_some() {
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        for account in rendered.all("ServiceAccount") {
            assert_eq!(account["automountServiceAccountToken"], false, "{account}");
        }
        for workload in rendered.workloads() {
            let pod = &workload["spec"]["template"]["spec"];
            assert_eq!(pod["automountServiceAccountToken"], false, "{folder}");
            for container in containers(pod) {
                let is_agent = container["name"] == "agent";
                let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
                let has_token = mounts.any(|mount| mount["name"] == "credentials");
                assert_eq!(has_token, is_agent, "{folder}: {container}");
            }
        }
        let mut bindings = rendered
            .all("ClusterRoleBinding")
            .chain(rendered.all("RoleBinding"));
        let namespace = if folder == CUSTOM {
            CUSTOM_SYSTEM
        } else {
            SYSTEM
        };
        let agent =
            json!([{"kind": "ServiceAccount", "name": "decree-agent", "namespace": namespace}]);
        // The readable public keys are for everybody.
        let reads_keys = |it: &Value| {
            folder == TOKENS && it["roleRef"]["name"] == "system:service-account-issuer-discovery"
        };
        assert!(
            bindings.all(|it| it["subjects"] == agent || reads_keys(it)),
            "{folder}"
        );
    }
}

#[test]
fn plain_text_stays_in_the_pod() {
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        let text = |name| rendered.workload(name).to_string();
        let agent = text("decree-agent");
        if IN_ONE.contains(&folder) {
            assert!(agent.contains("--listen=unix:/run/decree/server.sock"));
            assert_eq!(agent.matches("\"unix:/run/decree/server.sock\"").count(), 2);
            assert!(!agent.contains("DECREE_TLS") && !agent.contains("decree-agent-tls"));
            let pod = &rendered.workload("decree-agent")["spec"]["template"]["spec"];
            let containers = ["initContainers", "containers"].map(|it| pod[it].as_array());
            let containers = containers.into_iter().flatten().flatten();
            let ports = containers.filter_map(|it| it["ports"].as_array()).flatten();
            let ports: Vec<_> = ports.filter_map(|it| it["name"].as_str()).collect();
            assert_eq!(ports, ["server-admin", "admin"], "probes and metrics alone");
            // Not every network plugin knows the names of a sidecar's ports.
            let policy = &rendered.one("NetworkPolicy", "decree-agent")["spec"];
            let admitted = json!([{"port": "admin"}, {"port": 8080}]);
            assert_eq!(policy["ingress"][0]["ports"], admitted, "{folder}");
        } else {
            assert!(agent.contains("https://decree-server:50051"), "{folder}");
            let proves = match folder {
                TOKENS => "--token-keys=https://",
                _ => "--tls-ca=",
            };
            let server = text("decree-server");
            assert!(server.contains(proves), "{folder}");
            assert!(server.contains("--tls-cert="), "{folder}");
        }
        assert!(
            !agent.contains("http://") && !agent.contains("insecure"),
            "{folder}"
        );
    }
}

#[test]
fn certificates_of_cert_manager_are_those_that_the_pods_mount() {
    let (Some(base), Some(issued)) = (Rendered::of("base"), Rendered::of("cert-manager")) else {
        return;
    };
    for (name, usage) in [
        ("decree-server", "server auth"),
        ("decree-agent", "client auth"),
    ] {
        let certificate = issued.one("Certificate", name);
        let secret = &certificate["spec"]["secretName"];
        let pod = &base.workload(name)["spec"]["template"]["spec"];
        let mut volumes = pod["volumes"].as_array().expect("it has volumes").iter();
        assert!(
            volumes.any(|volume| volume["secret"]["secretName"] == *secret),
            "{name}"
        );
        assert_eq!(certificate["spec"]["usages"][1], usage);
    }
    let names = &issued.one("Certificate", "decree-server")["spec"]["dnsNames"];
    let names = names.as_array().expect("it has names");
    assert!(
        names.contains(&json!("decree-server")),
        "the name in the agent's URL"
    );
}

#[test]
fn agents_with_tokens_need_a_volume_and_no_certificate() {
    let rendered = tests::or_skip!(Rendered::of(TOKENS));
    let pod = &rendered.workload("decree-agent")["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().expect("it has volumes");
    let volume = |name: &str| volumes.iter().find(|it| it["name"] == name);
    let token = volume("token").expect("it is mounted");
    let token = &token["projected"]["sources"][0]["serviceAccountToken"];
    let server = rendered.workload("decree-server");
    let taken = &server["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!(taken["name"], "DECREE_TOKEN_AUDIENCE");
    assert_eq!(token["audience"], taken["value"]);
    assert_eq!(taken["value"], "decree-server.decree-system");
    let tls = &volume("tls").expect("it is mounted")["secret"];
    assert_eq!(tls["secretName"], "decree-server-tls");
    assert_eq!(tls["items"], json!([{"key": "ca.crt", "path": "ca.crt"}]));
    let container = &pod["containers"][0];
    let names = container["env"].as_array().expect("it has some").iter();
    let names: Vec<_> = names.map(|it| &it["name"]).collect();
    assert_eq!(
        names,
        ["DECREE_TOKEN_FILE", "DECREE_SERVER", "DECREE_TLS_CA"]
    );
    let asks = server.to_string().contains("--tls-ca");
    assert!(!asks, "it asks for no certificate");
}

#[test]
fn every_container_is_confined_probed_of_this_version_and_of_no_replica_set() {
    let image = concat!("ghcr.io/decree-dev/decree:", env!("CARGO_PKG_VERSION"));
    for folder in FOLDERS {
        let rendered = tests::or_skip!(Rendered::of(folder));
        // They would need a ReplicaSet controller: their pods would not come before Decree's first, nor after the loss of all.
        for kind in ["Deployment", "ReplicaSet"] {
            assert_eq!(rendered.all(kind).count(), 0, "{folder}: {kind}");
        }
        assert!(rendered.workloads().count() > 0, "{folder}");
        for workload in rendered.workloads() {
            let pod = &workload["spec"]["template"]["spec"];
            assert_eq!(pod["securityContext"]["runAsUser"], 65532, "{folder}");
            for container in containers(pod) {
                assert_eq!(container["image"], image, "{folder}");
                assert!(container["livenessProbe"].is_object(), "{folder}");
                let confined = json!({
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                });
                assert_eq!(container["securityContext"], confined, "{folder}");
            }
            let selector = &workload["spec"]["selector"];
            let mut budgets = rendered.all("PodDisruptionBudget");
            let budget = budgets.find(|it| it["spec"]["selector"] == *selector);
            // A drain leaves the pods of a DaemonSet alone.
            let is_drained = workload["kind"] != "DaemonSet";
            assert_eq!(budget.is_some(), is_drained, "{folder}");
            // Where no pod is ready, nodes can be drained all the same.
            let policy = budget.map(|it| &it["spec"]["unhealthyPodEvictionPolicy"]);
            assert!(policy.is_none_or(|it| it == "AlwaysAllow"), "{folder}");
            let mut policies = rendered.all("NetworkPolicy");
            assert!(
                policies.any(|it| it["spec"]["podSelector"] == *selector),
                "{folder}"
            );
        }
    }
}

/// Alternative overlays may share names, because a cluster has one at a time.
#[test]
fn what_stands_beside_another_overlay_has_names_of_its_own() {
    for beside in [CUSTOM, STATIC] {
        let (Some(rendered), Some(beside)) = (Rendered::of(IN_ONE[0]), Rendered::of(beside)) else {
            return;
        };
        let (rendered, beside) = (rendered.by_path(), beside.by_path());
        let shared: Vec<_> = beside
            .iter()
            .filter(|(path, _)| rendered.contains_key(*path))
            .collect();
        // A namespace for both may be the same object.
        for (path, object) in shared {
            assert_eq!(object["kind"], "Namespace", "{path}");
            assert_eq!(*object, rendered[path]);
        }
    }
}

#[tokio::test]
async fn static_pod_is_one_of_all_in_one_that_needs_no_object() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let all_in_one = tests::or_skip!(Rendered::of(IN_ONE[0]));
    let pod = static_pod();
    // The mirror pod of the kubelet in the API, which refuses a pod that needs a service account, a Secret or a ConfigMap.
    let mut mirror = pod.clone();
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "0"});
    mirror["spec"]["nodeName"] = json!("control-plane-0");
    let pods = "/api/v1/namespaces/kube-system/pods?fieldValidation=Strict&dryRun=All";
    server.admin().await.make(pods, &mirror).await;

    assert_eq!(pod["spec"]["hostNetwork"], true);
    let daemon = &all_in_one.workload("decree-agent")["spec"]["template"]["spec"];
    for (ours, theirs) in containers(&pod["spec"]).zip(containers(daemon)) {
        for field in ["name", "image", "command", "resources", "securityContext"] {
            assert_eq!(ours[field], theirs[field], "{field}");
        }
        let here = |arg: &Value| text_of(arg).starts_with("--admin=127.0.0.1:");
        let mut args = ours["args"].as_array().expect("it has flags").iter();
        assert!(args.any(here), "it listens in the network of the node");
    }
}

#[tokio::test]
async fn user_of_static_pods_may_what_the_service_account_may() {
    let server = tests::or_skip!(ApiServer::shared().await);
    let (Some(base), Some(rendered)) = (Rendered::of("base"), Rendered::of(STATIC)) else {
        return;
    };
    for kind in ["ClusterRole", "Role"] {
        let (ours, theirs) = (rendered.all(kind).next(), base.all(kind).next());
        let [ours, theirs] = [ours, theirs].map(|role| &role.expect("there is one")["rules"]);
        assert_eq!(ours, theirs, "{kind}");
    }
    let admin = server.admin().await;
    rendered.apply(&admin).await;
    for attributes in [
        json!({"verb": "create", "resource": "pods", "namespace": "default"}),
        json!({
            "verb": "update", "group": "coordination.k8s.io", "resource": "leases",
            "name": "decree-agent", "namespace": SYSTEM,
        }),
    ] {
        is_allowed(&admin, "decree-agent", &attributes).await;
    }
}

/// The pod for the folder of a kubelet.
pub(crate) fn static_pod() -> Value {
    let file = binaries::checkout().join("deploy/static-pods/decree.yaml");
    let file = fs::read_to_string(file).expect("it is in the checkout");
    serde_saphyr::from_str(&file).expect("it is YAML")
}

/// The container of a server, if a template of pods has one.
pub(crate) fn server_of(template: &Value) -> Option<&Value> {
    containers(&template["spec"]).find(|it| it["command"][0] == "/decree-server")
}

pub(crate) fn text_of(value: &Value) -> &str {
    value.as_str().expect("it is text")
}

pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = [&pod["initContainers"], &pod["containers"]];
    lists.into_iter().filter_map(Value::as_array).flatten()
}
