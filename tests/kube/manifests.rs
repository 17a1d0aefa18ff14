//! The shipped manifests are what an API server takes, and their pods what restricted namespaces admit.

use serde_json::{Value, json};
use tests::real::{Api, ApiServer};

use crate::rendered::{Rendered, SYSTEM};

/// The kustomizations that can be applied, in `deploy/kustomize`.
pub(crate) const FOLDERS: [&str; 6] = [
    "base",
    "overlays/all-in-one",
    "overlays/high-availability",
    "overlays/sharded",
    TOKENS,
    "overlays/custom-resource",
];

/// The one whose agents prove who they are by tokens.
pub(crate) const TOKENS: &str = "overlays/high-availability-tokens";

#[tokio::test]
async fn shipped_manifests_are_applied_and_their_pods_admitted() {
    let Some(server) = ApiServer::shared().await else {
        return;
    };
    let admin = server.admin().await;
    for folder in FOLDERS {
        let Some(rendered) = Rendered::of(folder) else {
            return;
        };
        rendered.apply(&admin).await;
        for deployment in rendered.all("Deployment") {
            pod_is_admitted(&admin, deployment, folder).await;
        }
    }
}

/// Creates the pod that a Deployment asks for, and one that may be more, which is refused: so the first was looked at.
async fn pod_is_admitted(admin: &Api, deployment: &Value, folder: &str) {
    let name = &deployment["metadata"]["name"];
    let template = &deployment["spec"]["template"];
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["generateName"] = json!("admitted-");
    let pods = format!("/api/v1/namespaces/{SYSTEM}/pods?fieldValidation=Strict");
    let created = admin.create(&pods, &pod).await;
    let created = created.unwrap_or_else(|refusal| panic!("{folder}: {name}: {refusal:?}"));
    let selected = &deployment["spec"]["selector"]["matchLabels"];
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
        let Some(rendered) = Rendered::of(folder) else {
            return;
        };
        for account in rendered.all("ServiceAccount") {
            assert_eq!(account["automountServiceAccountToken"], false, "{account}");
        }
        for deployment in rendered.all("Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
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
        let agent =
            json!([{"kind": "ServiceAccount", "name": "decree-agent", "namespace": SYSTEM}]);
        // What everybody may read are public keys.
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
        let Some(rendered) = Rendered::of(folder) else {
            return;
        };
        let text = |name| rendered.one("Deployment", name).to_string();
        let agent = text("decree-agent");
        if folder == "overlays/all-in-one" {
            assert!(agent.contains("--listen=unix:/run/decree/server.sock"));
            assert_eq!(agent.matches("\"unix:/run/decree/server.sock\"").count(), 2);
            assert!(!agent.contains("DECREE_TLS") && !agent.contains("decree-agent-tls"));
            let pod = &rendered.one("Deployment", "decree-agent")["spec"]["template"]["spec"];
            let containers = ["initContainers", "containers"].map(|it| pod[it].as_array());
            let containers = containers.into_iter().flatten().flatten();
            let ports = containers.filter_map(|it| it["ports"].as_array()).flatten();
            let ports: Vec<_> = ports.filter_map(|it| it["name"].as_str()).collect();
            assert_eq!(ports, ["server-admin", "admin"], "probes and metrics alone");
        } else {
            assert!(agent.contains("https://decree-server:50051"), "{folder}");
            let proves = match folder {
                TOKENS => ["--token-keys=https://", "--policy="],
                _ => ["--tls-ca=", "--tls-cert="],
            };
            let server = text("decree-server");
            assert!(proves.iter().all(|it| server.contains(it)), "{folder}");
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
        let pod = &base.one("Deployment", name)["spec"]["template"]["spec"];
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
    let Some(rendered) = Rendered::of(TOKENS) else {
        return;
    };
    let pod = &rendered.one("Deployment", "decree-agent")["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().expect("it has volumes");
    let volume = |name: &str| volumes.iter().find(|it| it["name"] == name);
    let token = volume("token").expect("it is mounted");
    let token = &token["projected"]["sources"][0]["serviceAccountToken"];
    assert_eq!(token["audience"], "decree");
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
    let server = rendered.one("Deployment", "decree-server").to_string();
    assert!(!server.contains("--tls-ca"), "it asks for no certificate");
}

#[test]
fn every_container_is_confined_probed_and_of_this_version() {
    let image = concat!("ghcr.io/decree-dev/decree:", env!("CARGO_PKG_VERSION"));
    for folder in FOLDERS {
        let Some(rendered) = Rendered::of(folder) else {
            return;
        };
        for deployment in rendered.all("Deployment") {
            let pod = &deployment["spec"]["template"]["spec"];
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
            let selector = &deployment["spec"]["selector"];
            let guarded = |kind: &str| {
                rendered
                    .all(kind)
                    .any(|it| it["spec"]["selector"] == *selector)
            };
            assert!(guarded("PodDisruptionBudget"), "{folder}");
            let mut policies = rendered.all("NetworkPolicy");
            assert!(
                policies.any(|it| it["spec"]["podSelector"] == *selector),
                "{folder}"
            );
        }
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = [&pod["initContainers"], &pod["containers"]];
    lists.into_iter().filter_map(Value::as_array).flatten()
}
