//! Label selectors of ReplicaSets: what they match (spec 2).

use serde_json::Value;

/// True if the labels satisfy a selector as written. An invalid requirement matches nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    let holds = |it| holds(it, labels);
    exact
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().flatten().all(holds)
}

/// True if the selector has no requirement at all.
pub(crate) fn is_empty(selector: &Value) -> bool {
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    exact.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty)
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let present = labels.get(expression["key"].as_str().unwrap_or_default());
    let values = expression["values"].as_array();
    let is_listed = present.is_some_and(|it| values.is_some_and(|values| values.contains(it)));
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => present.is_some(),
        "DoesNotExist" => present.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_requirements_must_hold() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "canary", "operator": "DoesNotExist"},
            ],
        });
        let not_in =
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]});
        for (selector, labels, matched) in [
            (&selector, json!({"app": "web", "tier": "b", "x": ""}), true),
            (&selector, json!({"app": "web", "tier": "c"}), false),
            (
                &selector,
                json!({"app": "web", "tier": "a", "canary": ""}),
                false,
            ),
            (&selector, Value::Null, false),
            (&not_in, json!({}), true),
            (&not_in, json!({"a": "y"}), true),
            (&not_in, json!({"a": "x"}), false),
        ] {
            assert_eq!(matches(selector, &labels), matched, "{selector} {labels}");
        }
    }
}
