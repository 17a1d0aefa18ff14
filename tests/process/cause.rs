//! The cause of a state is one sentence in all outputs.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
};

use serde_json::Value;
use tempfile::TempDir;
use tests::running::until_found;

use crate::world;

const CLUSTER: &str = "apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: default}
spec: {hard: {pods: 2}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default, uid: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: registry.example/app}]}
";
const SENTENCE: &str = "Quota exceeded in default: 2 of 2 pods";

/// The cause in the first row of the console.
fn cause_on_the_board(admin: &str) -> Value {
    let mut stream = TcpStream::connect(admin).expect("it listens");
    let request = format!("GET /console/api/stream?view=board HTTP/1.1\r\nHost: {admin}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let lines = BufReader::new(stream).lines();
    let rows = lines.map_while(Result::ok).find_map(|line| {
        let rows: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        let first = rows.get(0)?;
        Some(first["cause"].clone())
    });
    rows.expect("a row comes")
}

#[test]
fn sentence_of_a_refusal_is_the_same_in_get_explain_and_the_console() {
    let folder = TempDir::new().expect("a folder");
    let manifest = folder.path().join("cluster.yaml");
    fs::write(&manifest, CLUSTER).expect("it can be written");
    let server = world::server("127.0.0.1:0");
    let _agent = world::agent_with(&server.address("grpc"), &manifest);
    let url = format!("http://{}", server.address("grpc"));
    let decree = |arguments: &[&str]| {
        let mut command = world::program("decree");
        command.args(arguments).args(["--server", &url]);
        let output = command.output().expect("it was built");
        String::from_utf8(output.stdout).expect("it is text")
    };
    until_found("the cause in get", || {
        let said = decree(&["get", "rs"]);
        let row = said.lines().find(|line| line.contains("  web  "));
        let is_told = row.is_some_and(|row| row.contains(&format!("   Blocked   {SENTENCE}")));
        is_told.then_some(()).ok_or(said)
    });
    until_found("the cause in explain", || {
        let said = decree(&["explain", "web"]);
        let mut lines = said.lines().skip(1);
        let cause = format!("Cause:       {SENTENCE}");
        let is_told = lines.next().is_some_and(|line| line.starts_with(&cause));
        let next = "Next:        kubectl -n default describe resourcequota";
        let is_next = lines.next() == Some(next);
        (is_told && is_next).then_some(()).ok_or(said)
    });
    let cause = cause_on_the_board(&server.address("admin"));
    assert_eq!(cause["text"], SENTENCE, "{cause}");
    assert_eq!(cause["severity"], "SEVERITY_BLOCKED", "{cause}");
    let group = "Quota exceeded in default: at most 2 pods";
    assert_eq!(cause["group"], group, "{cause}");
}
