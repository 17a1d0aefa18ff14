//! Strategic merge patches, for the lists of pods and ReplicaSets.

use serde_json::{Value, json};

/// Merges `patch` into `target`: objects field by field, `null` removes, lists by their strategy.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (field, change) in changes {
        match change {
            Value::Null => {
                fields.shift_remove(field);
            }
            Value::Array(entries) => {
                let list = fields.entry(field).or_insert(Value::Null);
                merge_list(list, field, entries);
                if list.as_array().is_some_and(Vec::is_empty) {
                    fields.shift_remove(field);
                }
            }
            Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                merge(fields.entry(field).or_insert(Value::Null), change);
            }
        }
    }
}

/// Patches a list by the strategy of its field: no two lists of these kinds have different strategies under one name.
fn merge_list(target: &mut Value, field: &str, entries: &[Value]) {
    let key = match field {
        // Texts, each of which is its own key.
        "finalizers" => None,
        "ownerReferences" => Some("uid"),
        "conditions" => Some("type"),
        "containers" | "initContainers" | "ephemeralContainers" | "env" | "volumes" => Some("name"),
        _ => {
            *target = entries.into();
            return;
        }
    };
    if !target.is_array() {
        *target = json!([]);
    }
    let Value::Array(list) = target else {
        return;
    };
    for entry in entries {
        let is_same = |it: &Value| key.map_or_else(|| it == entry, |key| it[key] == entry[key]);
        let known = list.iter().position(is_same);
        match (known, entry["$patch"] == "delete") {
            (Some(at), true) => {
                list.remove(at);
            }
            (None, true) => {}
            (Some(at), false) => merge(&mut list[at], entry),
            (None, false) => {
                let mut fresh = Value::Null;
                merge(&mut fresh, entry);
                list.push(fresh);
            }
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
            // A patch adds finalizers, and removes none.
            (
                json!({"finalizers": ["a", "b"]}),
                json!({"finalizers": ["b", "c"]}),
                json!({"finalizers": ["a", "b", "c"]}),
            ),
            (
                json!({"labels": {"a": "1", "b": "2"}, "args": ["x", "y"]}),
                json!({"labels": {"a": null, "c": "3"}, "args": ["z"]}),
                json!({"labels": {"b": "2", "c": "3"}, "args": ["z"]}),
            ),
        ] {
            let mut merged = target;
            merge(&mut merged, &patch);
            assert_eq!(merged, expected, "{patch}");
        }
    }
}
