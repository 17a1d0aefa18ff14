//! `syncs.jsonl`: one complete sync, with faults.

use std::collections::BTreeSet;

use agent_kube::objects::status_to_json;
use decree_core::{Config, Controller, ControllerReport, Event, Kind, Span, Timestamp};
use serde_json::{Value, json};
use server_session::wire::encode;
use tests::golden;

use crate::{departures, executor::Executor, judge, list, now};

/// The result of one sync.
struct Observed {
    error: bool,
    requeue_after: Option<Span>,
    executor: Executor,
}

#[test]
fn syncs_do_as_recorded() {
    judge("syncs.jsonl", |case| {
        differences(&sync(case), &departures::expected(case))
    });
}

/// Compares every field; of `deletes` only the count where upstream's choice is open.
fn differences(observed: &Observed, expected: &Value) -> Vec<String> {
    let Observed {
        error,
        requeue_after,
        executor,
    } = observed;
    let status = executor
        .status
        .as_ref()
        .map(|status| without_messages(status_to_json(&encode::status(status.clone()))));
    let requeue_after = requeue_after.map(|Span(nanoseconds)| nanoseconds as f64 / 1e9);
    let mut expected = expected.clone();
    expected["status"] = without_messages(expected["status"].take());
    expected["requeueAfterSeconds"] = json!(expected["requeueAfterSeconds"].as_f64());
    let mut fields = vec![
        ("error", json!(error)),
        ("createCalls", json!(executor.create_calls)),
        ("created", json!(executor.created)),
        ("deleteCount", json!(executor.deletes.len())),
        ("adopts", names(&executor.adopts)),
        ("releases", names(&executor.releases)),
        ("status", json!(status)),
        ("requeueAfterSeconds", json!(requeue_after)),
    ];
    if expected["anyDeletes"].is_null() {
        fields.push(("deletes", names(&executor.deletes)));
    }
    let differs = fields
        .into_iter()
        .filter(|(field, got)| *got != expected[*field]);
    differs
        .map(|(field, got)| format!("{field}: got {got}, wanted {}", expected[field]))
        .collect()
}

/// Removes the messages of conditions from a status, because their wording is free.
fn without_messages(mut status: Value) -> Value {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let conditions = conditions.into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        condition.remove("message");
    }
    status
}

/// Returns names in the form of the recording: null if there are none.
fn names(names: &BTreeSet<String>) -> Value {
    if names.is_empty() {
        Value::Null
    } else {
        json!(names)
    }
}

/// Syncs the key of the case once, if it has a ReplicaSet, and executes the batches. Batches of other keys get no outcome.
fn sync(case: &Value) -> Observed {
    let now = now(case);
    let is_ours = |key: String| case["key"] == *key;
    let mut controller = fed(now, list(case, "replicaSets"), list(case, "pods"));
    let mut observed = Observed {
        error: false,
        requeue_after: None,
        executor: Executor::new(&case["fault"]),
    };
    loop {
        let batch = controller.poll_batch(now);
        if let Some((error, requeue_after)) = end_of_sync(&mut controller, is_ours) {
            return Observed {
                error,
                requeue_after,
                ..observed
            };
        }
        let Some(batch) = batch else { return observed };
        if is_ours(batch.key.to_string()) {
            let outcomes = observed.executor.execute(&controller, &batch);
            outcomes
                .into_iter()
                .for_each(|outcome| controller.handle_outcome(now, outcome));
        }
    }
}

/// Returns whether the first completed sync of the key failed, and when the next availability check is due.
fn end_of_sync(
    controller: &mut Controller,
    is_ours: impl Fn(String) -> bool,
) -> Option<(bool, Option<Span>)> {
    std::iter::from_fn(|| controller.poll_report()).find_map(|report| match report {
        ControllerReport::Synced {
            key,
            error,
            requeue_after,
        } if is_ours(key.to_string()) => Some((error.is_some(), requeue_after)),
        ControllerReport::Synced { .. }
        | ControllerReport::StaleViewSkipped { .. }
        | ControllerReport::Scaled { .. }
        | ControllerReport::Answered(_)
        | ControllerReport::ScaleDown(_)
        | ControllerReport::Quarantined { .. }
        | ControllerReport::BeyondMemory { .. }
        | ControllerReport::CreatesWait { .. } => None,
    })
}

fn fed(now: Timestamp, sets: &[Value], pods: &[Value]) -> Controller {
    let sets = sets
        .iter()
        .map(golden::replica_set)
        .map(Box::new)
        .map(Event::ReplicaSetApplied);
    let pods = pods.iter().map(golden::pod).map(Event::PodApplied);
    let mut controller = Controller::new(Config::default());
    for (kind, events) in [
        (Kind::ReplicaSet, sets.collect::<Vec<_>>()),
        (Kind::Pod, pods.collect()),
    ] {
        controller.handle_event(now, Event::SnapshotBegin(kind));
        events
            .into_iter()
            .for_each(|event| controller.handle_event(now, event));
        controller.handle_event(
            now,
            Event::SnapshotEnd {
                kind,
                version: None,
            },
        );
    }
    controller
}
