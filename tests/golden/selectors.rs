//! `selectors.jsonl`: which selectors are invalid, and what the others match.

use serde_json::{Value, json};
use server_core::Labels;
use tests::golden;

#[test]
fn selectors_match_as_recorded() {
    let Some(cases) = golden::cases("selectors.jsonl") else { return };
    let wrong: Vec<_> = cases.iter().filter(|case| !holds(case)).map(|case| &case["name"]).collect();
    assert!(wrong.is_empty(), "{} of {} differ: {wrong:?}", wrong.len(), cases.len());
}

fn holds(case: &Value) -> bool {
    let set = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u"},
        "spec": {"selector": case["selector"], "template": {}},
    });
    let labels: Labels = serde_json::from_value::<std::collections::BTreeMap<String, String>>(case["labels"].clone())
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let invalid = case["invalid"].as_bool().unwrap_or(false);
    match golden::replica_set(&set).selector {
        Ok(selector) => !invalid && Some(selector.matches(&labels)) == case["matches"].as_bool(),
        Err(_) => invalid,
    }
}
