//! A Lease at an API server that answers late.

use std::{
    convert::Infallible,
    env, fs, process,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agent_kube::CredentialSource;
use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    routing::{post, put},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::task::AbortOnDropHandle;

use super::*;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/decree-system/leases";

/// An API server that has one Lease, and answers the first renewal only when the purpose of the Lease has ended.
#[derive(Debug, Default)]
struct ApiServer {
    lease: Mutex<Value>,
    is_renewed: Notify,
    ended: Notify,
}

type Shared = State<Arc<ApiServer>>;
type Answer = (StatusCode, Json<Value>);

impl ApiServer {
    /// Stores the next version of a Lease, unless the write is based on an older version.
    fn store(&self, mut lease: Value) -> Option<Value> {
        let mut stored = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].as_str()?.parse().ok();
        let last: Option<u64> = version(&stored);
        if version(&lease) != last {
            return None;
        }
        lease["metadata"]["resourceVersion"] = json!((last.unwrap_or(0) + 1).to_string());
        *stored = lease.clone();
        Some(lease)
    }

    fn version(&self) -> Value {
        let stored = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        stored["metadata"]["resourceVersion"].clone()
    }

    fn holder(&self) -> Value {
        let stored = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        stored["spec"]["holderIdentity"].clone()
    }
}

fn refused(code: StatusCode) -> Answer {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16()});
    (code, Json(status))
}

fn answer(code: StatusCode, stored: Option<Value>) -> Answer {
    match stored {
        Some(lease) => (code, Json(lease)),
        None => refused(StatusCode::CONFLICT),
    }
}

async fn replace(State(api): Shared, Json(lease): Json<Value>) -> Answer {
    let stored = api.store(lease);
    if stored.is_some() && api.version() == "2" {
        api.is_renewed.notify_one();
        api.ended.notified().await;
    }
    answer(StatusCode::OK, stored)
}

/// Serves an API server, and connects a cluster to it.
async fn connect(api: &Arc<ApiServer>) -> (KubeCluster, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("there are ports");
    let address = listener.local_addr().expect("it listens");
    let create = |State(api): Shared, Json(lease): Json<Value>| async move {
        answer(StatusCode::CREATED, api.store(lease))
    };
    let absent = || async { refused(StatusCode::NOT_FOUND) };
    let routes = Router::new()
        .route(PATH, post(create))
        .route(&format!("{PATH}/decree-agent"), put(replace).get(absent))
        .with_state(Arc::clone(api));
    let serving = tokio::spawn(async move {
        let _ = axum::serve(listener, routes).await;
    });
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "tests",
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "clusters": [{"name": "tests", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "tests", "user": {}}],
    });
    let file = env::temp_dir().join(format!("decree-lease-{}.kubeconfig", process::id()));
    fs::write(&file, kubeconfig.to_string()).expect("there is room");
    let config = agent_kube::KubeClusterConfig {
        source: CredentialSource {
            kubeconfig: Some(file.clone()),
            context: None,
            impersonate: None,
        },
        namespace: None,
        resource: "replicasets.v1.apps".parse().expect("it is well written"),
        calls_max: 1,
    };
    let cluster = KubeCluster::connect(&config).await;
    fs::remove_file(&file).expect("it was written");
    let serving = AbortOnDropHandle::new(serving);
    (cluster.expect("the kubeconfig is whole"), serving)
}

#[tokio::test]
async fn lease_is_given_back_although_a_renewal_is_under_way() {
    let api = Arc::new(ApiServer::default());
    let (cluster, _serving) = connect(&api).await;
    let config = LeaseConfig {
        identity: "agent-a".to_owned(),
        namespace: "decree-system".to_owned(),
        name: "decree-agent".to_owned(),
        duration: Duration::from_secs(15),
        margin: Duration::from_secs(1),
        shared: false,
    };
    let held = Arc::clone(&api);
    let act = |_, _| async move {
        held.is_renewed.notified().await;
        assert_eq!(held.holder(), "agent-a");
        held.ended.notify_one();
        Ok::<_, Infallible>(())
    };
    let keeper = LeaseKeeper::new(config, cluster, Metrics::default());
    let led = keeper.hold(CancellationToken::new(), act).await;
    assert!(matches!(led, Ok(Ok(()))), "{led:?}");
    assert_eq!([api.version(), api.holder()], ["3", ""]);
}
