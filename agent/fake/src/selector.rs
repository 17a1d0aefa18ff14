//! Label selectors of ReplicaSets: their validity and what they match (spec 2).

use serde_json::Value;

use crate::names::{is_label_key, is_label_value};

/// True if the labels satisfy a selector as written. An invalid requirement matches nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    let (mut exact, mut expressions) = (
        exact.into_iter().flatten(),
        expressions.into_iter().flatten(),
    );
    exact.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(|it| holds(it, labels))
}

/// True if the selector has no requirement at all.
pub(crate) fn is_empty(selector: &Value) -> bool {
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    exact.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty)
}

/// The path below the selector and the error of its first invalid part.
pub(crate) fn first_fault(selector: &Value) -> Option<(String, String)> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    for (key, value) in labels {
        if let Some(fault) = label_fault(key, value) {
            return Some((".matchLabels".to_owned(), fault));
        }
    }
    let expressions = selector["matchExpressions"].as_array();
    let mut expressions = expressions.into_iter().flatten().enumerate();
    expressions.find_map(|(index, it)| {
        let (field, fault) = expression_fault(it)?;
        Some((format!(".matchExpressions[{index}]{field}"), fault))
    })
}

pub(crate) fn label_fault(key: &str, value: &Value) -> Option<String> {
    if !is_label_key(key) {
        return Some(format!(
            "Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.'"
        ));
    }
    let valid = value.as_str().is_some_and(is_label_value);
    (!valid).then(|| format!("Invalid value: {value}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"))
}

fn expression_fault(expression: &Value) -> Option<(&'static str, String)> {
    let key = expression["key"].as_str().unwrap_or_default();
    let values = expression["values"].as_array();
    let operator = expression["operator"].as_str().unwrap_or_default();
    let none = Value::from("");
    let fault = match (operator, values.map_or(0, Vec::len)) {
        ("In" | "NotIn", 0) => {
            "Required value: must be specified when `operator` is 'In' or 'NotIn'"
        }
        ("Exists" | "DoesNotExist", 1..) => {
            "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {
            let mut values = values.into_iter().flatten().chain([&none]);
            let fault = values.find_map(|value| label_fault(key, value));
            return fault.map(|fault| (".key", fault));
        }
        (other, _) => {
            let fault = format!("Invalid value: \"{other}\": not a valid selector operator");
            return Some((".operator", fault));
        }
    };
    Some((".values", fault.to_owned()))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let key = expression["key"].as_str().unwrap_or_default();
    let present = labels.get(key);
    let listed = || {
        let values = expression["values"].as_array();
        present.is_some_and(|value| values.is_some_and(|values| values.contains(value)))
    };
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => listed(),
        "NotIn" => !listed(),
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

    #[test]
    fn faults_name_their_field() {
        let expression = |it: Value| json!({"matchExpressions": [it]});
        for (selector, field) in [
            (json!({"matchLabels": {"a": "b"}}), None),
            (json!({"matchLabels": {"a b": ""}}), Some(".matchLabels")),
            (
                expression(json!({"key": "a", "operator": "Near"})),
                Some(".matchExpressions[0].operator"),
            ),
            (
                expression(json!({"key": "a", "operator": "In"})),
                Some(".matchExpressions[0].values"),
            ),
            (
                expression(json!({"key": "-", "operator": "Exists"})),
                Some(".matchExpressions[0].key"),
            ),
        ] {
            let fault = first_fault(&selector).map(|(field, _)| field);
            assert_eq!(fault.as_deref(), field);
        }
    }
}
