//! Intended departures from upstream: each function turns the recorded result of upstream into the expected one, field by field.

use serde_json::{Value, json};

use crate::list;

/// The condition that reports failed creates or deletes of pods.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Returns the expected result of the core, given `case["expected"]` of upstream.
pub(crate) fn expected(case: &Value) -> Value {
    let mut expected = case["expected"].clone();
    let before = failure_before(case);
    if stops_for_namespace(case) {
        failure_stays_while_none_succeeded(case, before.as_ref(), &mut expected);
        namespace_terminating_stops_the_batch(case, &mut expected);
    }
    if let Some(before) = before {
        failure_mirrors_the_latest_attempt(case, before, &mut expected);
    }
    expected
}

/// W15: upstream counts refusals of a terminating namespace as success and makes all calls. The core stops after the round with the first such
/// refusal. Changes `createCalls`.
fn namespace_terminating_stops_the_batch(case: &Value, expected: &mut Value) {
    let calls = expected["createCalls"].as_u64().unwrap_or_default();
    let refused = case["fault"]["failCreatesFrom"]
        .as_u64()
        .unwrap_or(u64::MAX);
    let ends = (1..).map(|rounds| (1_u64 << rounds) - 1);
    let stop = ends
        .into_iter()
        .find(|end| *end >= refused.min(calls))
        .unwrap_or(calls);
    expected["createCalls"] = json!(stop.min(calls));
}

/// W7: upstream removes ReplicaFailure when a terminating namespace refused every create, because it counts as success. The core keeps the
/// condition until an attempt succeeds. Changes `status`.
fn failure_stays_while_none_succeeded(case: &Value, before: Option<&Value>, expected: &mut Value) {
    let Some(before) = before.filter(|_| expected["created"] == 0) else {
        return;
    };
    let old = status_before(case);
    let mut status = written_or(expected, old);
    let at = list(old, "conditions")
        .iter()
        .position(|condition| condition == before);
    let mut conditions = list(&status, "conditions").to_vec();
    conditions.insert(at.unwrap_or_default(), before.clone());
    status["conditions"] = conditions.into();
    expected["status"] = if status == *old { Value::Null } else { status };
}

/// W7: upstream does not update an existing ReplicaFailure. The core takes reason and message from the latest attempt, but the
/// transition time changes only with the condition's status. Changes `status`, which the core writes even for a new message alone.
fn failure_mirrors_the_latest_attempt(case: &Value, before: Value, expected: &mut Value) {
    let creates = expected["createCalls"].as_u64().unwrap_or_default();
    let deletes = expected["deleteCount"].as_u64().unwrap_or_default();
    if expected["error"] != true || creates + deletes == 0 {
        return;
    }
    let mut fresh = before.clone();
    fresh["reason"] = json!(if creates > 0 {
        "FailedCreate"
    } else {
        "FailedDelete"
    });
    if before["status"] != "True" {
        fresh["status"] = json!("True");
        fresh["lastTransitionTime"] = case["now"].clone();
    }
    let mut status = written_or(expected, status_before(case));
    let conditions = status["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| **condition == before) {
        *condition = fresh.clone();
    }
    expected["status"] = status;
}

/// Returns whether a terminating namespace refused a create of this sync.
fn stops_for_namespace(case: &Value) -> bool {
    let calls = case["expected"]["createCalls"].as_u64().unwrap_or_default();
    let refused = case["fault"]["failCreatesFrom"].as_u64();
    case["fault"]["createError"] == "namespaceTerminating"
        && refused.is_some_and(|first| first <= calls)
}

/// Returns the status that upstream wrote, or the old status if upstream wrote none.
fn written_or(expected: &Value, old: &Value) -> Value {
    expected.get("status").unwrap_or(old).clone()
}

fn failure_before(case: &Value) -> Option<Value> {
    let mut conditions = list(status_before(case), "conditions").iter();
    conditions
        .find(|condition| condition["type"] == REPLICA_FAILURE)
        .cloned()
}

/// Returns the status of the key's ReplicaSet before the sync; null if there is none.
fn status_before(case: &Value) -> &Value {
    let part = |set: &Value, field: &str| set["metadata"][field].as_str().map(str::to_owned);
    let key = |set: &Value| {
        Some(format!(
            "{}/{}",
            part(set, "namespace")?,
            part(set, "name")?
        ))
    };
    let mut sets = list(case, "replicaSets").iter();
    let set = sets.find(|set| key(set).as_deref() == case["key"].as_str());
    set.map_or(&Value::Null, |set| &set["status"])
}
