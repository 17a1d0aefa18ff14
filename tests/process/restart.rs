//! Two real processes: they converge, survive the server's death, and drain on SIGTERM.

use std::fs;

use tempfile::TempDir;
use tests::admin;

use crate::world;

/// Enough that the server dies long before all are created: ten bursts.
const MANY: u64 = 5_000;

#[test]
fn two_processes_converge_and_drain() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent(&address);
    world::wait_until_converged(&address, 2);

    server.terminate();
    server.wait_for_message("draining", 1);
    let ended = server.wait();
    assert_eq!(ended.code(), Some(0), "the server drained");
    agent.wait_for_message("the server drains", 1);
    let lines = agent.tail();
    let errors = lines
        .iter()
        .filter(|line| line.contains(r#""level":"ERROR""#));
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "a drain is no error");
    agent.terminate();
    let ended = agent.wait();
    assert_eq!(ended.code(), Some(0), "the agent drained");
}

#[test]
fn server_killed_amid_a_scale_up_creates_no_pod_twice() {
    let folder = TempDir::new().expect("a folder");
    let manifest = folder.path().join("many.yaml");
    fs::write(&manifest, many()).expect("it can be written");
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent_with(&address, &manifest);
    let metrics = agent.address("admin");
    agent.wait_for_message("operation finished", 1);
    server.kill();
    agent.wait_for_message("the server is away", 1);
    let created = admin::metric(&metrics, CREATES);
    assert!(
        0 < created && created < MANY,
        "the server died amid the scale-up, after {created} creates"
    );

    let server = world::server(&address);
    server.address("grpc");
    world::wait_until_converged(&address, 1);
    let calls = [CREATES, DELETES].map(|name| admin::metric(&metrics, name));
    assert_eq!(
        calls,
        [MANY, 0],
        "each pod was created once, and none had to go"
    );
    agent.terminate();
    assert_eq!(agent.wait().code(), Some(0), "the agent drained");
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "the server drained");
}

const CREATES: &str = r#"decree_agent_calls_total{verb="create_pod"}"#;
const DELETES: &str = r#"decree_agent_calls_total{verb="delete_pod"}"#;

fn many() -> String {
    format!(
        "apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: many, namespace: default}}
spec:
  replicas: {MANY}
  selector: {{matchLabels: {{app: many}}}}
  template:
    metadata: {{labels: {{app: many}}}}
    spec: {{containers: [{{name: app, image: registry.example/app}}]}}
"
    )
}
