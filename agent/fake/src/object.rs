//! Reading and writing the metadata of an object that is kept as JSON.

use std::{sync::Arc, time::Duration};

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// The finalizer that holds an owner until the dependents that block its deletion are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that holds an owner until its dependents have lost their references to it.
pub(crate) const ORPHAN: &str = "orphan";

/// An object as the API writes it, shared with the watch log.
pub type Object = Arc<Value>;

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) controller: bool,
    pub(crate) blocks: bool,
}

/// A text in the metadata; empty if absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn version(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or(0)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

pub(crate) fn has_ended(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Returns whether a pod has neither ended nor a deletion request.
pub fn is_active(pod: &Value) -> bool {
    !is_deleting(pod) && !has_ended(pod)
}

/// Returns whether a pod is ready.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

pub(crate) fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

pub(crate) fn owners(object: &Value) -> impl Iterator<Item = Owner<'_>> {
    let entries = object["metadata"]["ownerReferences"].as_array();
    entries.into_iter().flatten().map(|entry| Owner {
        kind: entry["kind"].as_str().unwrap_or_default(),
        name: entry["name"].as_str().unwrap_or_default(),
        uid: entry["uid"].as_str().unwrap_or_default(),
        controller: entry["controller"] == true,
        blocks: entry["blockOwnerDeletion"] == true,
    })
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let entries = object["metadata"]["finalizers"].as_array();
    entries.into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).any(|it| it == finalizer)
}

pub(crate) fn waits_for_dependents(owner: &Value) -> bool {
    let waits = has_finalizer(owner, FOREGROUND) || has_finalizer(owner, ORPHAN);
    waits && is_deleting(owner)
}

/// True if an object is under deletion and nothing holds it any longer.
pub(crate) fn is_released(kind: Kind, object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_u64();
    let held = kind == Kind::Namespace || finalizers(object).next().is_some();
    is_deleting(object) && grace.unwrap_or(0) == 0 && !held
}

/// Marks an object for deletion at the end of its grace period. An object that is marked already keeps its time.
pub(crate) fn mark_deleting(object: &mut Value, now: Timestamp, grace: Duration) {
    if is_deleting(object) {
        return;
    }
    let by = time(now.checked_add(grace).unwrap_or(now));
    let metadata = metadata(object);
    metadata.insert("deletionTimestamp".to_owned(), by);
    metadata.insert(
        "deletionGracePeriodSeconds".to_owned(),
        grace.as_secs().into(),
    );
    bump_generation(object);
}

/// The fields of an object inside an object, created if absent.
pub(crate) fn fields<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let inner = &mut object[name];
    if !inner.is_object() {
        *inner = json!({});
    }
    inner.as_object_mut().expect("made an object just above")
}

pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    fields(object, "metadata")
}

pub(crate) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = metadata(object).entry("finalizers").or_insert(json!([]));
    if let Some(list) = finalizers.as_array_mut() {
        list.push(finalizer.into());
    }
}

/// Removes the entries of a metadata list for which `goes` is true, and the list itself when it is empty.
pub(crate) fn strip(object: &mut Value, list: &str, goes: impl Fn(&Value) -> bool) {
    let metadata = metadata(object);
    if let Some(entries) = metadata.get_mut(list).and_then(Value::as_array_mut) {
        entries.retain(|entry| !goes(entry));
        if entries.is_empty() {
            metadata.shift_remove(list);
        }
    }
}

pub(crate) fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = generation.saturating_add(1).into();
    }
}

/// A time in the API's format, to the second.
pub(crate) fn time(time: Timestamp) -> Value {
    let round = TimestampRound::new().smallest(Unit::Second);
    let whole = time.round(round.mode(RoundMode::Floor));
    whole.unwrap_or(time).to_string().into()
}

/// Sets the condition of this type; the transition time changes only with the status.
pub(crate) fn set_condition(
    object: &mut Value,
    now: Timestamp,
    kind: &str,
    status: &str,
    reason: &str,
) {
    let conditions = fields(object, "status")
        .entry("conditions")
        .or_insert(json!([]));
    let Some(list) = conditions.as_array_mut() else {
        return;
    };
    let known = list.iter().position(|it| it["type"] == kind);
    let since = known
        .map(|at| &list[at])
        .filter(|it| it["status"] == status)
        .map_or_else(|| time(now), |it| it["lastTransitionTime"].clone());
    let mut entry = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
    });
    if !reason.is_empty() {
        entry["reason"] = reason.into();
    }
    match known {
        Some(at) => list[at] = entry,
        None => list.push(entry),
    }
}
