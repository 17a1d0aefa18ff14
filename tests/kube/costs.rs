//! Pods that are asked how busy they are. No kubelet runs, so the worker of the examples runs on this machine, whose address a pod has.

use std::{
    net::{IpAddr, UdpSocket},
    process::Command,
};

use serde_json::{Value, json};
use tests::{
    binaries,
    real::{Agent, ApiServer, DecisionServer, Namespace, User},
    running::{Running, Voice},
};

use crate::{acts, lasting::is_explained, objects};

const READY_SINCE: &str = "2026-05-01T12:00:00Z";

/// An address of this machine that is not that of its loopback. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
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

#[tokio::test(flavor = "multi_thread")]
async fn busy_worker_of_the_examples_stays() {
    let cluster = tests::or_skip!(ApiServer::shared().await);
    let address = tests::or_skip!(own_address());
    let namespace = Namespace::create(cluster.admin().await, "costs").await;
    let server = DecisionServer::start();
    let flags = [
        "--leader-elect=false",
        "--namespace",
        "costs",
        "--scale-in-costs",
        "http",
    ];
    let _agent = Agent::start(&server, &cluster.kubeconfig(User::Admin), &flags);
    let (mut busy, port) = worker();
    busy.tell("3600");
    busy.wait_for("its job", |lines| {
        lines.iter().any(|it| it == "begun 3600").then_some(())
    });
    let mut set = objects::replica_set("web", 2);
    set["metadata"]["annotations"] =
        json!({"decree.dev/scale-in-cost": format!("http://:{port}/busy")});
    acts::create_set(&namespace, &set).await;
    let pods = acts::pods_become(&namespace, 2).await;
    // Without the answer, the pod that has restarted is deleted.
    is_ready(&namespace, &pods[0], 9, Some(address)).await;
    is_ready(&namespace, &pods[1], 0, None).await;
    acts::status_becomes(&namespace, "web", &json!({"readyReplicas": 2})).await;
    acts::scale(&namespace, "web", 1).await;
    let left = acts::pods_become(&namespace, 1).await;
    assert_eq!(acts::name(&left[0]), acts::name(&pods[0]));
    is_explained(&server, "costs/web", "1 (asked)").await;
    is_explained(
        &server,
        "costs/web",
        &format!("Prefers:     scale-in-cost: http://:{port}/busy"),
    )
    .await;
    busy.kill();

    let (idle, _) = worker();
    idle.terminate();
    assert!(idle.wait().success(), "it has no job to end");
}
