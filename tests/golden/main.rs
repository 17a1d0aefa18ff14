//! Tier: recorded results of upstream, from Kubernetes JSON through the contract to the core.
//!
//! The recordings are in `tests/golden/data`, or in the folder `DECREE_GOLDEN`; README.md beside this file describes them.
//! The recordings of Decree on a real API server are in `tests/golden/recordings`.

mod deletion_order;
mod departures;
mod executor;
mod recordings;
mod selectors;
mod skew;
mod syncs;

use decree_core::Timestamp;
use serde_json::Value;
use tests::golden;

/// Checks every case of a file, and fails with the names of all cases that have `differences`.
fn judge(file: &str, differences: impl Fn(&Value) -> Vec<String>) {
    let cases = golden::cases(file);
    assert!(!cases.is_empty(), "{file} holds no case");
    let wrong: Vec<_> = cases
        .iter()
        .map(|case| (&case["name"], differences(case)))
        .filter(|(_, differences)| !differences.is_empty())
        .map(|(name, differences)| format!("{name}: {}", differences.join("; ")))
        .collect();
    let (bad, all) = (wrong.len(), cases.len());
    assert!(
        wrong.is_empty(),
        "{bad} of {all} cases of {file} differ:\n{}",
        wrong.join("\n")
    );
    eprintln!("{file}: {all} of {all} cases hold");
}

/// Returns the elements of a field of a case; none if the field is absent.
fn list<'a>(case: &'a Value, field: &str) -> &'a [Value] {
    case[field].as_array().map_or(&[], Vec::as_slice)
}

fn now(case: &Value) -> Timestamp {
    golden::time(&case["now"])
}
