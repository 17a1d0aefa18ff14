//! Strategic merge patches, for the lists of pods and ReplicaSets.

use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges `patch` into `target`: objects field by field, `null` removes, lists by their strategy.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if changes.get(DIRECTIVE).is_some_and(|it| it == "replace") || !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (field, change) in changes {
        merge_field(fields, field, change);
    }
}

fn merge_field(fields: &mut Map<String, Value>, field: &str, change: &Value) {
    if let Some(list) = field.strip_prefix(DELETE_FROM) {
        remove_texts(fields, list, change);
        return;
    }
    match change {
        _ if field.starts_with('$') => {}
        Value::Null => {
            fields.shift_remove(field);
        }
        Value::Object(inner) if inner.get(DIRECTIVE).is_some_and(|it| it == "delete") => {
            fields.shift_remove(field);
        }
        Value::Array(entries) => {
            let list = fields.entry(field).or_insert(Value::Null);
            merge_list(list, field, entries);
            if fields[field].as_array().is_some_and(Vec::is_empty) {
                fields.shift_remove(field);
            }
        }
        Value::Object(_) => merge(fields.entry(field).or_insert(Value::Null), change),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(field.to_owned(), change.clone());
        }
    }
}

/// Patches a list by the strategy of its field: no two lists of these kinds have different strategies under one name.
fn merge_list(target: &mut Value, field: &str, entries: &[Value]) {
    let replaces = entries.iter().any(|entry| entry[DIRECTIVE] == "replace");
    if !target.is_array() || replaces {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(list) = target else {
        return;
    };
    let key = match field {
        "ownerReferences" => "uid",
        "conditions" => "type",
        "containers" | "initContainers" | "ephemeralContainers" | "env" | "volumes" => "name",
        "finalizers" => {
            for entry in entries {
                if !list.contains(entry) {
                    list.push(entry.clone());
                }
            }
            return;
        }
        _ => {
            *list = entries.to_vec();
            return;
        }
    };
    for entry in entries {
        merge_entry(list, key, entry);
    }
}

fn merge_entry(list: &mut Vec<Value>, key: &str, entry: &Value) {
    let known = list.iter().position(|it| it[key] == entry[key]);
    match (entry[DIRECTIVE].as_str(), known) {
        (Some("delete"), Some(at)) => {
            list.remove(at);
        }
        (Some("delete"), None) => {}
        (Some("replace"), None) if entry.get(key).is_none() => {}
        (_, Some(at)) => merge(&mut list[at], entry),
        (_, None) => {
            let mut fresh = Value::Null;
            merge(&mut fresh, entry);
            list.push(fresh);
        }
    }
}

fn remove_texts(fields: &mut Map<String, Value>, list: &str, goes: &Value) {
    let Some(goes) = goes.as_array() else {
        return;
    };
    if let Some(entries) = fields.get_mut(list).and_then(Value::as_array_mut) {
        entries.retain(|entry| !goes.contains(entry));
        if entries.is_empty() {
            fields.shift_remove(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_merged_by_their_keys_and_fields_by_their_names() {
        for (target, patch, expected) in [
            // An adoption keeps other owners, and completes a plain reference in place.
            (
                json!({"ownerReferences": [{"uid": "other", "kind": "Thing"}]}),
                json!({"ownerReferences": [{"uid": "rs", "controller": true}]}),
                json!({"ownerReferences": [{"uid": "other", "kind": "Thing"}, {"uid": "rs", "controller": true}]}),
            ),
            (
                json!({"ownerReferences": [{"uid": "rs", "name": "web"}, {"uid": "b"}]}),
                json!({"ownerReferences": [{"uid": "rs", "controller": true}]}),
                json!({"ownerReferences": [{"uid": "rs", "name": "web", "controller": true}, {"uid": "b"}]}),
            ),
            // A release removes one owner, and then the list.
            (
                json!({"ownerReferences": [{"uid": "rs"}, {"uid": "b"}]}),
                json!({"ownerReferences": [{"$patch": "delete", "uid": "rs"}]}),
                json!({"ownerReferences": [{"uid": "b"}]}),
            ),
            (
                json!({"ownerReferences": [{"uid": "rs"}]}),
                json!({"ownerReferences": [{"$patch": "delete", "uid": "rs"}]}),
                json!({}),
            ),
            (
                json!({}),
                json!({"ownerReferences": [{"$patch": "delete", "uid": "rs"}]}),
                json!({}),
            ),
            (
                json!({"labels": {"a": "1", "b": "2"}, "args": ["x", "y"]}),
                json!({"labels": {"a": null, "c": "3"}, "args": ["z"]}),
                json!({"labels": {"b": "2", "c": "3"}, "args": ["z"]}),
            ),
            // Finalizers are added once, and removed by a directive.
            (
                json!({"finalizers": ["a"]}),
                json!({"finalizers": ["a", "b"]}),
                json!({"finalizers": ["a", "b"]}),
            ),
            (
                json!({"finalizers": ["a", "b"]}),
                json!({"$deleteFromPrimitiveList/finalizers": ["a", "b"]}),
                json!({}),
            ),
        ] {
            let mut merged = target;
            merge(&mut merged, &patch);
            assert_eq!(merged, expected, "{patch}");
        }
    }
}
