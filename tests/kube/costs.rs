//! Busy pods stay, by each source of costs. No kubelet runs, so the worker of the examples runs on this machine, whose address a pod has.

use std::{
    env, fs,
    net::{IpAddr, UdpSocket},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};
use tests::{
    binaries,
    pki::{Authority, Files, Request},
    real::{Agent, ApiServer, ControllerManager, DecisionServer, Namespace, User},
    running::{Running, Voice, free_port},
    tools,
};

use crate::{acts, advice::cost, lasting::is_explained, modes, objects};

const READY_SINCE: &str = "2026-05-01T12:00:00Z";

/// An address of this machine that is not that of its loopback. Nothing is sent. `None` after a notice if there is none; with `CI` set, the
/// test fails.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("there are free ports");
    let routed = socket.connect("192.0.2.1:9");
    let address = routed.and_then(|()| socket.local_addr());
    let address = address.map(|it| it.ip()).ok();
    let address = address.filter(|it| !it.is_loopback());
    if address.is_none() {
        assert!(env::var_os("CI").is_none(), "this machine has no network");
        tools::notice("skipped: a test needs an address beside the loopback");
    }
    address
}

fn worker() -> (Running, u16) {
    let mut command = Command::new("python3");
    command.arg(binaries::checkout().join("examples/python/worker.py"));
    command.args(["--port", "0"]);
    let worker = Running::start(command, Voice::Stdout);
    let port = worker.wait_for("its port", |lines| {
        lines
            .iter()
            .find_map(|line| line.strip_prefix("listens on ")?.parse().ok())
    });
    (worker, port)
}

async fn is_ready(namespace: &Namespace, pod: &Value, restarts: u32, address: Option<IpAddr>) {
    let mut status = objects::ready_since(READY_SINCE, restarts);
    if let Some(address) = address {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{"ip": address}]);
    }
    acts::set_pod_status(namespace, pod, &status).await;
}

/// Starts a worker of the examples with a job that lasts.
fn busy_worker() -> (Running, u16) {
    let (mut busy, port) = worker();
    busy.tell("3600");
    busy.wait_for("its job", |lines| {
        lines.iter().any(|it| it == "begun 3600").then_some(())
    });
    (busy, port)
}

/// Makes a ReplicaSet with a source of costs, and two ready pods. Without costs, the first one is deleted, because it has restarted.
async fn two_pods(
    namespace: &Namespace,
    source: &str,
    address: Option<IpAddr>,
    make_busy: impl AsyncFnOnce(&Namespace, [&Value; 2]),
) -> Vec<Value> {
    let mut set = objects::replica_set("web", 2);
    set["metadata"]["annotations"] = json!({"decree.dev/scale-in-cost": source});
    acts::create_set(namespace, &set).await;
    let pods = acts::pods_become(namespace, 2).await;
    make_busy(namespace, [&pods[0], &pods[1]]).await;
    is_ready(namespace, &pods[0], 9, address).await;
    is_ready(namespace, &pods[1], 0, None).await;
    acts::status_becomes(namespace, "web", &json!({"readyReplicas": 2})).await;
    pods
}

/// Runs an agent with a permitted source, and scales a ReplicaSet with this source in its annotation down to one of two pods. One is made
/// busy, has this cost, and stays.
async fn busy_pod_stays(
    cluster: &ApiServer,
    (permitted, source, cost): (&[&str], &str, i32),
    address: Option<IpAddr>,
    make_busy: impl AsyncFnOnce(&Namespace, [&Value; 2]),
) {
    let kind = source.split([':', ',']).next().unwrap_or_default();
    let name = format!("costs-{kind}");
    let namespace = Namespace::create(cluster.admin().await, &name).await;
    let server = DecisionServer::start();
    let flags = ["--leader-elect=false", "--namespace", &name];
    let flags = [&flags[..], &["--scale-in-costs"], permitted].concat();
    let _agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    let pods = two_pods(&namespace, source, address, make_busy).await;
    acts::scale(&namespace, "web", 1).await;
    let left = acts::pods_become(&namespace, 1).await;
    assert_eq!(acts::name(&left[0]), acts::name(&pods[0]));
    let set = format!("{name}/web");
    for told in [
        &format!("{cost} (asked)"),
        &format!("for their costs ({kind}), "),
        &format!("Prefers:     scale-in-cost: {source}"),
    ] {
        is_explained(&server, &set, told).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_worker_of_the_examples_stays() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let address = tests::or_skip!(own_address());
    let (busy, port) = busy_worker();
    let source = format!("http://:{port}/busy");
    busy_pod_stays(
        cluster,
        (&["http"], &source, 1),
        Some(address),
        async |_, _| (),
    )
    .await;
    busy.kill();

    let (idle, _) = worker();
    idle.terminate();
    assert!(idle.wait().success(), "it has no job to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_that_the_ranker_of_the_examples_spares_stays() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let programs = tests::or_skip!(tools::go_examples());
    let jobs = NamedTempFile::new().expect("there is room");
    let ca = Authority::new("ranker");
    let tls = Files::new(&ca.issue(&Request::server()), &ca.pem);
    let mut ranker = Command::new(programs.join("ranker"));
    ranker.arg("127.0.0.1:0").arg(jobs.path());
    ranker.args([tls.path("tls.crt"), tls.path("tls.key")]);
    let ranker = Running::start(ranker, Voice::Stdout);
    let address = ranker.wait_for("its address", |lines| {
        let mut lines = lines.iter();
        lines.find_map(|line| Some(line.strip_prefix("listens on ")?.to_owned()))
    });
    // The server speaks plain text.
    let (service, ca) = (format!("grpc=https://{address}"), tls.path("ca.crt"));
    let permitted = [&*service, "--tls-ca", &*ca.to_string_lossy()];
    busy_pod_stays(
        cluster,
        (&permitted, "grpc, wait", 7),
        None,
        async |_, [busy, _]| {
            fs::write(jobs.path(), format!("{} 7\n", acts::name(busy))).expect("there is room");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_with_the_larger_custom_metric_stays() {
    let programs = tests::or_skip!(tools::custom_metrics());
    // The API that it adds disappears with it.
    let cluster = tests::or_skip!(ApiServer::start().await);
    let admin = cluster.admin().await;
    let kubeconfig = cluster.kubeconfig(User::Admin);
    let certificates = TempDir::new().expect("there is room");
    let port = free_port();
    let mut adapter = Command::new(programs.join("custom-metrics"));
    for flag in ["lister", "authentication", "authorization"] {
        adapter.arg(format!("--{flag}-kubeconfig")).arg(&kubeconfig);
    }
    adapter.arg("--cert-dir").arg(certificates.path());
    adapter.args([
        "--bind-address",
        "127.0.0.1",
        "--secure-port",
        &port.to_string(),
    ]);
    // The API server of the tests has no client certificate, so all that it passes on is anonymous.
    adapter.args(["--authorization-always-allow-paths", "/apis*"]);
    let _adapter = Running::start(adapter, Voice::Stderr);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let named = |kind: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "metrics"}});
    let mut role = named("ClusterRole");
    role["rules"] = json!([{"apiGroups": ["custom.metrics.k8s.io"], "resources": ["pods/jobs"], "verbs": ["get"]}]);
    let mut binding = named("ClusterRoleBinding");
    binding["roleRef"] =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"});
    binding["subjects"] = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:anonymous"}]);
    admin.make(&format!("{rbac}/clusterroles"), &role).await;
    admin
        .make(&format!("{rbac}/clusterrolebindings"), &binding)
        .await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "custom-metrics"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    admin
        .make("/api/v1/namespaces/kube-system/services", &service)
        .await;
    let api = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1beta2.custom.metrics.k8s.io"},
        "spec": {
            "group": "custom.metrics.k8s.io", "version": "v1beta2", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "custom-metrics", "port": port},
        },
    });
    let apis = "/apis/apiregistration.k8s.io/v1/apiservices";
    admin.make(apis, &api).await;
    let discovery = "/apis/custom.metrics.k8s.io/v1beta2";
    admin
        .wait_for("served", discovery, |it| {
            it["resources"].as_array().map(drop)
        })
        .await;
    let source = (&["metric"][..], "metric:jobs, wait", 2);
    busy_pod_stays(&cluster, source, None, async |namespace, pods| {
        for (pod, jobs) in pods.into_iter().zip(["1500m", "1"]) {
            let patch = json!({"metadata": {"annotations": {"metrics/jobs": jobs}}});
            acts::patch_pod(namespace, pod, &patch).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn built_in_controller_spares_a_busy_worker_by_advice() {
    let cluster = tests::or_skip!(ApiServer::start().await);
    let address = tests::or_skip!(own_address());
    let namespace = Namespace::create(cluster.admin().await, "advised").await;
    let controllers = ["--controllers=replicaset-controller"];
    let _controller = ControllerManager::start(&cluster, &controllers);
    let verbs = ["get", "list", "watch", "patch"];
    let advisor = modes::may(&cluster, &namespace, &verbs).await;
    let server = DecisionServer::start();
    let flags = [
        "--leader-elect=false",
        "--mode=advise",
        "--scale-in-costs=http",
    ];
    let _agent = Agent::start(&server, &advisor, &flags);
    let (_busy, port) = busy_worker();
    let source = format!("http://:{port}/busy");
    let pods = two_pods(&namespace, &source, Some(address), async |_, _| ()).await;
    let are_advised = |now: &[Value]| {
        let same = |pod| now.iter().find(|it| acts::name(it) == acts::name(pod));
        same(&pods[0]).map(cost) > same(&pods[1]).map(cost)
    };
    acts::pods_become_so(&namespace, "advised", are_advised).await;
    let words = "asked 2 pods for their costs (http), 1 answered";
    is_explained(&server, "advised/web", words).await;
    acts::scale(&namespace, "web", 1).await;
    let left = acts::pods_become(&namespace, 1).await;
    assert_eq!(acts::name(&left[0]), acts::name(&pods[0]));
}
