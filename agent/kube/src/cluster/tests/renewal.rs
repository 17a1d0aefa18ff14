//! Credentials that change while a cluster is in use: the agent gets refused credentials again, without a new process.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request as HttpRequest, State},
    response::Response,
};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::{server::serve, *};

const PLUGIN: &str = "client.authentication.k8s.io/v1";

/// The place of a kubeconfig user's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// In a file, with a line end.
    File,
    /// In the kubeconfig itself.
    Kubeconfig,
    /// From a plugin that does not tell when the token expires.
    Plugin,
}

/// An API server that accepts one token.
struct Api {
    url: String,
    token: Arc<Mutex<String>>,
    _server: AbortOnDropHandle<()>,
}

impl Api {
    async fn start(token: &str) -> Self {
        let token = Arc::new(Mutex::new(token.to_owned()));
        let router = Router::new().fallback(answer);
        let (url, server) = serve(router.with_state(Arc::clone(&token))).await;
        Self {
            url,
            token,
            _server: server,
        }
    }
}

async fn answer(State(token): State<Arc<Mutex<String>>>, request: HttpRequest) -> Response<Body> {
    let given = request.headers().get("authorization");
    let expected = format!("Bearer {}", token.lock().expect("no one panics"));
    let is_known = given.is_some_and(|given| given.as_bytes() == expected.as_bytes());
    let namespace = json!({"metadata": {"uid": "c1"}}).to_string();
    let answer = Response::builder().status(if is_known { 200 } else { 401 });
    answer.body(namespace.into()).expect("the code is one")
}

impl Kept {
    /// Writes the place of a token, and a kubeconfig that refers to it.
    fn write(self, folder: &Path, url: &str, token: &str) {
        let file = folder.join("token");
        fs::write(&file, format!("{token}\n")).expect("there is room");
        let user = match self {
            Self::File => json!({"tokenFile": file}),
            Self::Kubeconfig => json!({"token": token}),
            Self::Plugin => {
                let plugin = folder.join("plugin");
                let credential = json!({
                    "kind": "ExecCredential", "apiVersion": PLUGIN, "status": {"token": "TOKEN"},
                });
                let (credential, file) = (credential.to_string(), file.display());
                let script = format!("echo '{credential}' | sed \"s/TOKEN/$(cat '{file}')/\"\n");
                fs::write(&plugin, script).expect("there is room");
                json!({"exec": {
                    "apiVersion": PLUGIN, "command": "/bin/sh", "args": [plugin],
                    "interactiveMode": "Never",
                }})
            }
        };
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
            "clusters": [{"name": "tests", "cluster": {"server": url}}],
            "users": [{"name": "tests", "user": user}],
        });
        let kubeconfig = kubeconfig.to_string();
        fs::write(folder.join("kubeconfig"), kubeconfig).expect("there is room");
    }
}

async fn renewed(kept: Kept) {
    let folder = TempDir::new().expect("there is room");
    let api = Api::start("one").await;
    kept.write(folder.path(), &api.url, "one");
    let config = KubeClusterConfig {
        source: CredentialSource {
            kubeconfig: Some(folder.path().join("kubeconfig")),
            context: None,
            impersonate: None,
        },
        namespace: None,
        resource: Resource::default(),
        calls_max: 1,
    };
    let cluster = KubeCluster::connect(&config).await;
    let cluster = cluster.expect("the kubeconfig is one");
    assert_eq!(cluster.uid().await, Ok("c1".into()), "{kept:?}");
    "two".clone_into(&mut api.token.lock().expect("no one panics"));
    let refused = cluster.uid().await;
    assert_eq!(
        refused.expect_err("it is another").code,
        Some(401),
        "{kept:?}"
    );
    kept.write(folder.path(), &api.url, "two");
    let accepted = async {
        while cluster.uid().await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let accepted = timeout(Duration::from_mins(5), accepted).await;
    accepted.unwrap_or_else(|_| panic!("the token is not read anew: {kept:?}"));
}

#[tokio::test]
async fn token_that_is_refused_is_read_anew() {
    for kept in [Kept::File, Kept::Kubeconfig, Kept::Plugin] {
        renewed(kept).await;
    }
}
