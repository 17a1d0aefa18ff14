//! A budget that holds deletes: the reports, and the resume.

use std::{fs, path::Path, process::Output};

use serde_json::Value;
use tempfile::TempDir;
use tests::{
    admin,
    running::{Running, until_found},
};

use crate::world;

/// A server, an agent whose budget holds, and the addresses of the agent.
struct Held {
    server: Running,
    agent: Running,
    admin: String,
    _folder: TempDir,
}

impl Held {
    /// Starts both on a cluster with a limit of ten deletes a minute for a scope.
    fn start(cluster: &str, scope: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let manifest = folder.path().join("cluster.yaml");
        fs::write(&manifest, cluster).expect("it can be written");
        let server = world::server("127.0.0.1:0");
        let limit = format!("--delete-budget-{scope}=10");
        let flags = ["--budget-action", "hold", &limit];
        let agent = agent_of(&server, &manifest, &flags);
        let admin = agent.address("admin");
        Self {
            server,
            agent,
            admin,
            _folder: folder,
        }
    }

    fn metric(&self, name: &str, scope: &str) -> u64 {
        let labels = format!("{{scope=\"{scope}\",operation=\"delete\"}}");
        admin::metric(&self.admin, &format!("decree_agent_{name}{labels}"))
    }

    /// Waits until limits have been exceeded `times` times.
    fn wait_until_exceeded(&self, scope: &str, times: u64) {
        until_found("a limit that is exceeded", || {
            let is_enough = self.metric("budget_exceeded_total", scope) >= times;
            is_enough.then_some(()).ok_or_else(|| self.agent.tail())
        });
    }

    fn decree(&self, arguments: &[&str]) -> Output {
        let agent = format!("http://{}", self.admin);
        let mut command = world::program("decree");
        command.args(arguments).args(["--agent", &agent]);
        command.output().expect("it was built")
    }

    /// The exit code of `decree check`, and the result, the detail and the hint of its findings about the budget.
    fn checked(&self) -> (Option<i32>, Vec<[String; 3]>) {
        let server = format!("http://{}", self.server.address("grpc"));
        let output = self.decree(&["check", "-o", "json", "--server", &server]);
        let lines: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let text = |line: &Value, key: &str| line[key].as_str().expect("it is text").to_owned();
        let of_budget = lines.iter().filter(|line| line["check"] == "budget");
        let told = of_budget.map(|line| ["result", "detail", "hint"].map(|key| text(line, key)));
        (output.status.code(), told.collect())
    }

    fn resume(&self, what: &[&str]) -> String {
        let output = self.decree(&[&["resume"], what].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }
}

fn agent_of(server: &Running, manifest: &Path, flags: &[&str]) -> Running {
    world::flagged_agent_with(&server.address("grpc"), manifest, flags)
}

/// A ReplicaSet without desired pods that has some.
fn idle(name: &str, pods: u32) -> String {
    let pod = |number: u32| {
        format!(
            "apiVersion: v1
kind: Pod
metadata:
  name: {name}-{number}
  namespace: default
  labels: {{app: {name}}}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {name}, uid: {name}, controller: true}}]
spec: {{containers: [{{name: app, image: registry.example/app}}]}}
---
"
        )
    };
    let set = format!(
        "apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, namespace: default, uid: {name}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: app, image: registry.example/app}}]}}
---
"
    );
    set + &(0..pods).map(pod).collect::<String>()
}

#[test]
fn deletes_are_held_until_a_person_resumes_them() {
    let held = Held::start(&idle("idle", 25), "replicaset");
    held.wait_until_exceeded("replicaset", 1);
    assert_eq!(held.metric("budget_held", "replicaset"), 1);
    assert!(admin::get(&held.admin, "/readyz").is_ok(), "it is ready");
    let noted = |lines: &[String]| {
        let is_it = |line: &&String| line.contains("\"reason\":\"BudgetExceeded\"");
        (lines.iter().filter(is_it).count() == 1).then_some(())
    };
    held.agent.wait_for("one event", noted);
    let (code, told) = held.checked();
    assert_eq!((code, told.len()), (Some(1), 1), "{told:?}");
    let [result, detail, hint] = &told[0];
    assert_eq!(
        (result.as_str(), hint.as_str()),
        ("FAIL", "decree resume default/idle")
    );
    assert!(
        detail.contains("11 deletes in a minute, 10 are allowed"),
        "{detail}"
    );
    let resumed = held.resume(&["default/idle"]);
    assert_eq!(resumed, "annotated default/idle with decree.dev/resume\n");
    held.wait_until_exceeded("replicaset", 2);
    held.resume(&["--all"]);
    world::wait_until_converged(&held.server.address("grpc"), 1);
    assert_eq!(held.metric("budget_held", "replicaset"), 0);
    let (_, told) = held.checked();
    assert_eq!(told, [["OK", "holds nothing", ""].map(str::to_owned)]);
}

#[test]
fn all_replica_sets_of_a_namespace_go_on_together() {
    let cluster = idle("first", 8) + &idle("second", 8);
    let held = Held::start(&cluster, "namespace");
    held.wait_until_exceeded("namespace", 1);
    let (_, told) = held.checked();
    assert_eq!(told[0][2], "decree resume --namespace default");
    let elsewhere = held.decree(&["resume", "-n", "elsewhere"]);
    assert_eq!(elsewhere.status.code(), Some(1), "{elsewhere:?}");
    held.resume(&["-n", "default"]);
    world::wait_until_converged(&held.server.address("grpc"), 2);
}

#[test]
fn scope_is_named_once() {
    for arguments in [
        &["resume"][..],
        &["resume", "web"],
        &["resume", "default/web", "--all"],
        &["resume", "-n", "default", "--all"],
        &["resume", "--all", "--agent", "127.0.0.1:1"],
    ] {
        let mut command = world::program("decree");
        let output = command.args(arguments).output().expect("it was built");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
}
