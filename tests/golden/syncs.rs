//! `syncs.jsonl`: one whole sync, with faults.

use std::collections::BTreeSet;

use agent_core::project::status_to_kubernetes_json;
use serde_json::{Value, json};
use server_core::{Config, Controller, Event, Kind, Report, Span, Timestamp};
use tests::golden;

use crate::executor::Executor;

/// What one sync did.
struct Observed {
    error: bool,
    requeue_after: Option<Span>,
    executor: Executor,
}

#[test]
fn syncs_do_as_recorded() {
    let Some(cases) = golden::cases("syncs.jsonl") else { return };
    let wrong: Vec<_> = cases.iter().filter_map(|case| {
        let differences = differences(case);
        (!differences.is_empty()).then(|| format!("{}: {}", case["name"], differences.join("; ")))
    }).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn differences(case: &Value) -> Vec<String> {
    let expected = &case["expected"];
    let observed = sync(case);
    let executor = &observed.executor;
    let terminating = case["fault"]["createError"] == "namespaceTerminating";
    let mut differences = Vec::new();
    let mut check = |field: &str, got: Value| {
        let wanted = expected.get(field).cloned().unwrap_or(Value::Null);
        if got != wanted {
            differences.push(format!("{field}: got {got}, upstream {wanted}"));
        }
    };
    check("error", json!(observed.error));
    if !terminating {
        // Departure W15: the batch stops at the first answer that the namespace is being deleted.
        check("createCalls", json!(executor.create_calls));
    }
    check("created", json!(executor.created));
    check("deleteCount", json!(executor.deletes.len()));
    if expected["anyDeletes"].is_null() {
        check("deletes", names(&executor.deletes));
    }
    check("adopts", names(&executor.adopts));
    check("releases", names(&executor.releases));
    check("requeueAfterSeconds", seconds(observed.requeue_after));
    let status = executor.status.as_ref().map(|status| {
        let status = decree_server::wire::encode::status(status.clone());
        comparable(&status_to_kubernetes_json(&status), case)
    });
    let wanted = expected.get("status").map(|status| comparable(status, case));
    if status != wanted {
        differences.push(format!("status: got {status:?}, upstream {wanted:?}"));
    }
    differences
}

/// Makes a status comparable: the text of a message is free, and the reason of a ReplicaFailure that was there before is that of the
/// latest attempt (departure W7), where upstream keeps the first.
fn comparable(status: &Value, case: &Value) -> Value {
    let mut status = status.clone();
    let repeated = case["expected"]["error"] == true && failed_before(case);
    for condition in status["conditions"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.remove("message");
        if repeated && condition["type"] == "ReplicaFailure" {
            condition.remove("reason");
        }
    }
    status
}

/// Returns whether the key's ReplicaSet says already that it failed.
fn failed_before(case: &Value) -> bool {
    let sets = case["replicaSets"].as_array().into_iter().flatten();
    let mut sets = sets.filter(|set| {
        let name = [&set["metadata"]["namespace"], &set["metadata"]["name"]].map(|part| part.as_str().unwrap_or_default());
        Some(name.join("/").as_str()) == case["key"].as_str()
    });
    let conditions = sets.next().and_then(|set| set["status"]["conditions"].as_array());
    conditions.into_iter().flatten().any(|condition| condition["type"] == "ReplicaFailure")
}

fn names(names: &BTreeSet<String>) -> Value {
    if names.is_empty() { Value::Null } else { json!(names) }
}

fn seconds(span: Option<Span>) -> Value {
    span.map_or(Value::Null, |Span(nanoseconds)| {
        if nanoseconds % 1_000_000_000 == 0 { json!(nanoseconds / 1_000_000_000) } else { json!(nanoseconds as f64 / 1e9) }
    })
}

/// Lets the case's key sync once and obeys what comes.
fn sync(case: &Value) -> Observed {
    let now = golden::time(&case["now"]);
    let key = case["key"].as_str().expect("a case has a key");
    let mut controller = fed(case, now);
    let mut executor = Executor::new(&case["fault"]);
    loop {
        let batch = controller.poll_batch(now);
        while let Some(report) = controller.poll_report() {
            if let Report::Synced { key: synced, error, requeue_after } = report
                && synced.to_string() == key
            {
                return Observed { error: error.is_some(), requeue_after, executor };
            }
        }
        let batch = batch.expect("the key syncs to its end");
        if batch.key.to_string() == key {
            for outcome in executor.execute(&batch) {
                controller.handle_outcome(now, outcome);
            }
        }
    }
}

fn fed(case: &Value, now: Timestamp) -> Controller {
    let list = |field: &str| case[field].as_array().cloned().unwrap_or_default();
    let sets = list("replicaSets");
    let sets = sets.iter().map(|set| Event::ReplicaSetApplied(Box::new(golden::replica_set(set))));
    let pods = list("pods");
    let pods = pods.iter().map(|pod| Event::PodApplied(golden::pod(pod)));
    let mut controller = Controller::new(Config { operations_in_flight_max: 1_000_000, ..Config::default() });
    for (kind, events) in [(Kind::ReplicaSet, sets.collect::<Vec<_>>()), (Kind::Pod, pods.collect())] {
        controller.handle_event(now, Event::SnapshotBegin(kind));
        events.into_iter().for_each(|event| controller.handle_event(now, event));
        controller.handle_event(now, Event::SnapshotEnd { kind, version: None });
    }
    controller
}
