//! Which resource the ReplicaSets are: Kubernetes' own, or a custom one of the same shape.

use std::{fmt, str::FromStr};

use serde_json::Value;

const APPS: &str = "apps";

/// The resource that is read, watched and given a status. Its kind is `ReplicaSet` whatever its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    plural: String,
    version: String,
    group: String,
}

// === impl Resource ===

impl Resource {
    /// Returns the group and version as objects and references name them, such as `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns whether this is not Kubernetes' own resource.
    pub(super) fn is_custom(&self) -> bool {
        self.group != APPS
    }

    pub(super) fn root(&self) -> String {
        format!("/apis/{}", self.api_version())
    }

    pub(super) fn plural(&self) -> &str {
        &self.plural
    }
}

impl Default for Resource {
    fn default() -> Self {
        Self {
            plural: "replicasets".into(),
            version: "v1".into(),
            group: APPS.into(),
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plural,
            version,
            group,
        } = self;
        write!(formatter, "{plural}.{version}.{group}")
    }
}

impl FromStr for Resource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '.');
        let (Some(plural), Some(version), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("not PLURAL.VERSION.GROUP".to_owned());
        };
        let mut labels = [plural, version].into_iter().chain(group.split('.'));
        if !labels.all(is_label) {
            return Err("not PLURAL.VERSION.GROUP of lower-case names".to_owned());
        }
        let resource = Self {
            plural: plural.into(),
            version: version.into(),
            group: group.into(),
        };
        match resource.is_custom() || resource == Self::default() {
            true => Ok(resource),
            false => Err(format!("of {APPS} only {} will do", Self::default())),
        }
    }
}

/// Returns a selector in the one line that autoscalers read, or `None` where it is none.
pub(super) fn selector_text(selector: &Value) -> Option<String> {
    let mut requirements = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        for (key, value) in labels {
            requirements.push(format!("{key}={}", value.as_str()?));
        }
    }
    if let Some(expressions) = selector.get("matchExpressions").and_then(Value::as_array) {
        for expression in expressions {
            requirements.push(expression_text(expression)?);
        }
    }
    Some(requirements.join(",")).filter(|text| !text.is_empty())
}

fn expression_text(expression: &Value) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let values = || {
        let values = expression.get("values")?.as_array()?.iter();
        Some(
            values
                .map(Value::as_str)
                .collect::<Option<Vec<_>>>()?
                .join(","),
        )
    };
    match expression.get("operator")?.as_str()? {
        "In" => Some(format!("{key} in ({})", values()?)),
        "NotIn" => Some(format!("{key} notin ({})", values()?)),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

/// Returns whether this is a label of a DNS name.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn default_is_as_it_is_written() {
        let default = Resource::default();
        assert_eq!(default.to_string(), "replicasets.v1.apps");
        assert_eq!("replicasets.v1.apps".parse(), Ok(default));
    }

    #[test]
    fn group_may_have_dots() {
        let custom: Resource = "replicasets.v1.decree.dev".parse().expect("it is one");
        assert_eq!(custom.api_version(), "decree.dev/v1");
        assert_eq!(custom.root(), "/apis/decree.dev/v1");
        assert!(custom.is_custom());
    }

    #[test]
    fn what_is_no_resource_of_replica_sets_is_refused() {
        for text in [
            "",
            "replicasets",
            "replicasets.v1",
            "replicasets.v1.",
            "pods..v1",
            "replicasets.v1.decree..dev",
            "a/b.v1.decree.dev",
            "deployments.v1.apps",
            "replicasets.v1beta1.apps",
        ] {
            assert!(text.parse::<Resource>().is_err(), "{text}");
        }
    }

    #[test]
    fn selector_is_written_as_autoscalers_read_it() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "zone", "operator": "NotIn", "values": ["c"]},
                {"key": "new", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        });
        let text = "app=web,tier in (a,b),zone notin (c),new,!old";
        assert_eq!(selector_text(&selector).as_deref(), Some(text));
        assert_eq!(selector_text(&json!({})), None);
        let unknown = json!({"matchExpressions": [{"key": "k", "operator": "Near"}]});
        assert_eq!(selector_text(&unknown), None);
    }
}
