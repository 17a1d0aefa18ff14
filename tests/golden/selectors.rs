//! `selectors.jsonl`: the invalid selectors, and the matches of the valid ones.

use serde_json::{Value, json};
use tests::golden;

use crate::judge;

#[test]
fn selectors_match_as_recorded() {
    judge("selectors.jsonl", differences);
}

fn differences(case: &Value) -> Vec<String> {
    let pod = json!({"metadata": {"namespace": "default", "name": "a", "uid": "p", "labels": case["labels"]}});
    let set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "s"},
        "spec": {"selector": case["selector"], "template": {}},
    });
    let labels = golden::pod(&pod).labels;
    let wanted = match case["invalid"].as_bool() {
        Some(true) => None,
        Some(false) | None => case["matches"].as_bool(),
    };
    let got = golden::replica_set(&set)
        .selector
        .map(|selector| selector.matches(&labels));
    match (got, wanted) {
        (Ok(got), Some(wanted)) if got == wanted => Vec::new(),
        (Err(_), None) => Vec::new(),
        (Ok(got), wanted) => vec![format!("got {got}, upstream {wanted:?}")],
        (Err(quarantine), Some(_)) => vec![format!("refused: {quarantine:?}")],
    }
}
