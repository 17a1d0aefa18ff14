//! Tokens of a real API server: those that the kubelet would put into the volume of the overlay, checked as its servers check
//! them.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    binaries,
    pki::{Authority, Files, Request},
    real::{Api, ApiServer, User},
    running::{Running, Voice},
};

use crate::{
    manifests::TOKENS,
    rendered::{Rendered, SYSTEM},
};

/// The issuer of the API server of these tests.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The audience of the overlay.
const AUDIENCE: &str = "decree-server.decree-system";

async fn token(admin: &Api, name: &str, audience: &str) -> String {
    let path = format!("/api/v1/namespaces/{SYSTEM}/serviceaccounts/{name}/token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": [audience], "expirationSeconds": 3600},
    });
    let made = admin.make(&path, &request).await;
    made["status"]["token"]
        .as_str()
        .expect("it is text")
        .to_owned()
}

/// The arguments of the overlay's server, with the files, addresses and issuer of this test.
fn arguments(rendered: &Rendered, cluster: &ApiServer, tls: &Files, policy: &Path) -> Vec<String> {
    let pod = &rendered.workload("decree-server")["spec"]["template"]["spec"];
    let given = pod["containers"][0]["args"].as_array();
    let given = given.expect("it has arguments").iter();
    let argument = |given: &Value| {
        let given = given.as_str().expect("it is text");
        let (flag, value) = given.split_once('=').expect("each has a value");
        let value = match flag {
            "--listen" | "--admin" => "127.0.0.1:0".to_owned(),
            "--tls-cert" => tls.path("tls.crt").display().to_string(),
            "--tls-key" => tls.path("tls.key").display().to_string(),
            "--token-keys" => value.replace("https://kubernetes.default.svc", &cluster.url()),
            "--token-keys-ca" => cluster.ca().display().to_string(),
            "--token-issuer" => ISSUER.to_owned(),
            "--policy" => policy.display().to_string(),
            flag => panic!("{flag} is new: say what it is in this test"),
        };
        format!("{flag}={value}")
    };
    given.map(argument).collect()
}

#[tokio::test]
async fn token_of_a_service_account_opens_a_session_as_the_overlay_has_it() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let rendered = tests::or_skip!(Rendered::of(TOKENS));
    let admin = cluster.admin().await;
    rendered.apply(&admin).await;
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    };
    let policy = &rendered.one("ConfigMap", "decree-policy")["data"]["policy.toml"];
    let policy = file("policy.toml", policy.as_str().expect("it is text"));
    let authority = Authority::new("CA of the servers");
    let tls = Files::new(&authority.issue(&Request::server()), &authority.pem);

    let mut command = Command::new(binaries::folder().join("decree-server"));
    command.args(arguments(&rendered, &cluster, &tls, &policy));
    command.env("DECREE_TOKEN_AUDIENCE", AUDIENCE);
    let server = Running::start(command, Voice::Stderr);
    let url = format!("https://{}", server.address("grpc"));
    let ca = tls.path("ca.crt");
    let sessions = |token: &Path| {
        let mut command = Command::new(binaries::folder().join("decree"));
        command.args([
            "get", "sessions", "-o", "json", "--server", &url, "--tls-ca",
        ]);
        command.arg(&ca).arg("--token-file").arg(token);
        command.output().expect("it was built")
    };

    let agents = file("agent", &token(&admin, "decree-agent", AUDIENCE).await);
    let others = file("other", &token(&admin, "decree-server", AUDIENCE).await);
    let at_the_api = file("api", &token(&admin, "decree-agent", ISSUER).await);
    // A token that agents of another group have for their server.
    let elsewhere = file(
        "elsewhere",
        &token(&admin, "decree-agent", "decree-server.other").await,
    );
    let mut command = Command::new(binaries::folder().join("decree-agent"));
    command
        .args(["--admin", "off", "--leader-elect=false"])
        .args(["--built-in-controller", "off", "--kubeconfig"])
        .arg(cluster.kubeconfig(User::Admin))
        .args(["--server", &url, "--tls-ca"])
        .arg(&ca)
        .arg("--token-file")
        .arg(&agents);
    let _agent = Running::start(command, Voice::Stderr);
    server.wait_for_message("session opened", 1);
    let seen = sessions(&agents);
    let seen: Value = serde_json::from_slice(&seen.stdout).expect("JSON");
    assert_eq!(seen["sessions"].as_array().map(Vec::len), Some(1), "{seen}");
    for (token, reason) in [
        (&others, "NOT_ALLOWED"),
        (&at_the_api, "TOKEN_INVALID"),
        (&elsewhere, "TOKEN_INVALID"),
    ] {
        let denied = sessions(token);
        let said = String::from_utf8_lossy(&denied.stderr);
        assert!(said.contains(reason), "{said}");
    }
}
