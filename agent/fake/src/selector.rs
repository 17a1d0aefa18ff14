//! Label selectors of ReplicaSets: their validity and what they match (spec 2).

use serde_json::Value;

use crate::names::{is_label_key, is_label_value};

/// True if the labels satisfy a selector as written. An invalid requirement matches nothing.
pub(crate) fn matches(selector: &Value, labels: &Value) -> bool {
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    exact
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions
            .into_iter()
            .flatten()
            .all(|it| holds(it, labels))
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
    let expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    expressions.enumerate().find_map(|(index, it)| {
        expression_fault(it)
            .map(|(field, fault)| (format!(".matchExpressions[{index}]{field}"), fault))
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
    let count = values.map_or(0, Vec::len);
    match expression["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if count == 0 => {
            return Some((
                ".values",
                "Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned(),
            ));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            return Some((
                ".values",
                "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    .to_owned(),
            ));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            return Some((
                ".operator",
                format!("Invalid value: \"{other}\": not a valid selector operator"),
            ));
        }
    }
    let values = values.into_iter().flatten();
    let fault = values
        .chain([&Value::from("")])
        .find_map(|value| label_fault(key, value));
    fault.map(|fault| (".key", fault))
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
        assert!(matches(
            &selector,
            &json!({"app": "web", "tier": "b", "x": ""})
        ));
        assert!(!matches(&selector, &json!({"app": "web", "tier": "c"})));
        assert!(!matches(
            &selector,
            &json!({"app": "web", "tier": "a", "canary": ""})
        ));
        assert!(!matches(&selector, &Value::Null));
    }

    #[test]
    fn not_in_holds_where_the_key_is_absent() {
        let not_in =
            json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]});
        assert!(matches(&not_in, &json!({})) && matches(&not_in, &json!({"a": "y"})));
        assert!(!matches(&not_in, &json!({"a": "x"})));
    }

    #[test]
    fn faults_name_their_field() {
        let fault = |selector| first_fault(&selector).map(|(field, _)| field);
        let expression = |it: Value| json!({"matchExpressions": [it]});
        assert_eq!(fault(json!({"matchLabels": {"a": "b"}})), None);
        assert_eq!(
            fault(json!({"matchLabels": {"a b": ""}})).as_deref(),
            Some(".matchLabels")
        );
        let operator = fault(expression(json!({"key": "a", "operator": "Near"})));
        assert_eq!(operator.as_deref(), Some(".matchExpressions[0].operator"));
        let values = fault(expression(json!({"key": "a", "operator": "In"})));
        assert_eq!(values.as_deref(), Some(".matchExpressions[0].values"));
        let key = fault(expression(json!({"key": "-", "operator": "Exists"})));
        assert_eq!(key.as_deref(), Some(".matchExpressions[0].key"));
    }
}
