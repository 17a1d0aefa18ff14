//! A session typed by hand into grpcurl: anyone who can write JSON can act as an agent.

use std::{fs, process::Command};

use serde_json::{Value, json};

use tests::{
    binaries,
    running::{Running, Voice},
    tools,
};

use crate::world;

/// The start of the document's session: hello and both lists.
const OPENING: &str = "docs/examples/session.ndjson";

#[test]
fn session_typed_by_hand_runs_to_its_rest() {
    let grpcurl = tests::or_skip!(tools::grpcurl());
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let mut command = Command::new(grpcurl.join("grpcurl"));
    command.args(["-plaintext", "-d", "@", &address]);
    command.arg("decree.v1.DecisionService/Reconcile");
    let mut typist = Running::start(command, Voice::Stdout);
    let opening = fs::read_to_string(binaries::checkout().join(OPENING)).expect("it is there");
    opening.lines().for_each(|line| typist.tell(line));

    let mut answered = 0;
    let mut actions = Vec::new();
    while actions.iter().filter(|it| *it == "writeStatus").count() < 2 {
        let batch = typist.wait_for("the next batch", |lines| batches(lines).nth(answered));
        let (action, outcomes) = obey(&batch);
        actions.push(action);
        answered += 1;
        typist.tell(&json!({"outcomes": {"outcomes": outcomes}}).to_string());
    }
    actions.sort();
    assert_eq!(actions, ["create", "delete", "writeStatus", "writeStatus"]);
    typist.close();
    assert_eq!(typist.wait().code(), Some(0), "the session ended well");
}

/// The batches among the complete frames in grpcurl's output.
fn batches(lines: &[String]) -> impl Iterator<Item = Value> {
    let text = lines.join("\n");
    let frames = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let frames: Vec<_> = frames.map_while(Result::ok).collect();
    frames.into_iter().flat_map(|frame| {
        let batches = frame["batches"]["batches"].as_array().cloned();
        batches.unwrap_or_default()
    })
}

/// Reports success for every operation of a batch, and returns the action's name and the outcomes.
fn obey(batch: &Value) -> (String, Vec<Value>) {
    let operations = |list: &Value| list.as_array().expect("it lists operations").clone();
    let (action, dones) = if let Some(create) = batch.get("create") {
        let names = operations(&create["names"]);
        (
            "create",
            names.iter().map(|name| created(batch, name)).collect(),
        )
    } else if let Some(delete) = batch.get("delete") {
        let victims = operations(&delete["victims"]);
        let gone = json!({"gone": true, "resourceVersion": "300"});
        ("delete", vec![gone; victims.len()])
    } else {
        assert!(batch.get("writeStatus").is_some(), "{batch:#}");
        ("writeStatus", vec![json!({"resourceVersion": "400"})])
    };
    let outcome = |(operation, done): (usize, Value)| json!({"batchId": batch["id"], "operation": operation, "done": done});
    let outcomes = dones.into_iter().enumerate().map(outcome);
    (action.to_owned(), outcomes.collect())
}

fn created(batch: &Value, name: &Value) -> Value {
    let owner = &batch["replicaSet"];
    let uid = format!("uid-of-{}", name.as_str().expect("a name is a text"));
    let pod = json!({
        "namespace": owner["namespace"], "name": name, "uid": uid, "resourceVersion": "200",
        "labels": {"app": owner["name"]}, "phase": "POD_PHASE_RUNNING", "nodeName": "node-a", "ready": {"ready": true},
        "controller": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner["name"], "uid": owner["uid"]},
    });
    json!({"uid": uid, "resourceVersion": "200", "pod": pod})
}
