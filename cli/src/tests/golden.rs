//! The recorded syncs of upstream through the command: the JSON of the command must be as exact as the core.

use std::{fs::File, io::read_to_string};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{decree_reading, root};
use crate::Exit;

#[test]
fn recorded_syncs_are_decided_as_upstream_did() {
    let file = root().join("tests/golden/data/syncs.jsonl.gz");
    let packed = File::open(file).expect("it is in the checkout");
    let recorded = read_to_string(GzDecoder::new(packed)).expect("it is whole");
    let cases = recorded
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    // The command assumes that all operations succeed, so it cannot know faults of the API.
    let cases = cases.filter(|case| case["fault"] == json!({}));
    // The command does not decide for objects that no API server admits, but upstream's controller does.
    let cases: Vec<_> = cases.filter(has_requirements).collect();
    assert!(cases.len() > 100, "only {} cases are left", cases.len());
    cases.iter().for_each(check);
}

/// Whether the selector of the ReplicaSet has requirements.
fn has_requirements(case: &Value) -> bool {
    let sets = list(&case["replicaSets"]);
    let path = |set: &Value| {
        let [namespace, name] = ["namespace", "name"].map(|field| set["metadata"][field].as_str());
        format!(
            "{}/{}",
            namespace.unwrap_or("default"),
            name.unwrap_or_default()
        )
    };
    let asked = sets.iter().find(|set| case["key"] == *path(set));
    let selector = &asked.expect("it was recorded")["spec"]["selector"];
    !matches!(&selector["matchLabels"], Value::Null)
        || !matches!(&selector["matchExpressions"], Value::Null)
}

fn check(case: &Value) {
    let [replica_sets, pods] = ["replicaSets", "pods"].map(|kind| list(&case[kind]));
    let items = [replica_sets, pods].concat();
    let list = json!({"kind": "List", "items": items}).to_string();
    let [name, key, now] =
        ["name", "key", "now"].map(|field| case[field].as_str().expect("recorded"));
    let arguments = [
        "decide",
        "-f",
        "-",
        "--replica-set",
        key,
        "--now",
        now,
        "-o",
        "json",
    ];
    let ended = decree_reading(&list, &arguments);
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""), "{name}");
    let decision: Value = serde_json::from_str(&ended.out).expect("one line of JSON");
    let expected = &case["expected"];
    assert_eq!(decision["replicaSet"], key, "{name}");
    assert_eq!(decision["creates"]["count"], expected["created"], "{name}");
    assert_eq!(decision["adopts"], or_empty(&expected["adopts"]), "{name}");
    assert_eq!(
        decision["releases"],
        or_empty(&expected["releases"]),
        "{name}"
    );
    assert_eq!(decision["status"], expected["status"], "{name}");
    assert_eq!(
        decision["requeueAfterSeconds"], expected["requeueAfterSeconds"],
        "{name}"
    );
    let deletes = list_of_names(&decision["deletes"]);
    assert_eq!(json!(deletes.len()), expected["deleteCount"], "{name}");
    if expected["anyDeletes"].is_null() {
        assert_eq!(json!(deletes), or_empty(&expected["deletes"]), "{name}");
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().expect("a list was recorded").clone()
}

fn list_of_names(victims: &Value) -> Vec<String> {
    let names = list(victims)
        .into_iter()
        .map(|victim| victim["name"].as_str().expect("a name").to_owned());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// A list that is not recorded is empty.
fn or_empty(recorded: &Value) -> Value {
    if recorded.is_null() {
        json!([])
    } else {
        recorded.clone()
    }
}
