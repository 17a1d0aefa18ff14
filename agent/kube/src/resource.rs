//! The resource of the ReplicaSets: Kubernetes' own, or a custom one of the same shape.

use std::{fmt, str::FromStr};

use decree_api::v1;

const APPS: &str = "apps";

/// The resource that is read, watched and given a status. Its kind is `ReplicaSet` in any group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    plural: String,
    version: String,
    group: String,
}

impl Resource {
    /// Returns the group and version as in objects and references, such as `apps/v1`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns whether this is not Kubernetes' own resource.
    pub fn is_custom(&self) -> bool {
        self.group != APPS
    }

    pub(crate) fn root(&self) -> String {
        format!("/apis/{}", self.api_version())
    }

    /// Returns the name of the resource in paths and permissions, such as `replicasets`.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Returns its API group, such as `apps`.
    pub fn group(&self) -> &str {
        &self.group
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
        let parts: Vec<_> = text.splitn(3, '.').collect();
        let [plural, version, group] = parts[..] else {
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
        if resource.is_custom() || resource == Self::default() {
            Ok(resource)
        } else {
            Err(format!("of {APPS} only {} will do", Self::default()))
        }
    }
}

/// The selector as one line for autoscalers, or `None` if it is invalid.
pub(crate) fn selector_text(selector: &v1::LabelSelector) -> Option<String> {
    let mut labels: Vec<_> = selector.match_labels.iter().collect();
    labels.sort_unstable();
    let labels = labels
        .into_iter()
        .map(|(key, value)| Some(format!("{key}={value}")));
    let expressions = selector.match_expressions.iter().map(expression_text);
    let requirements: Option<Vec<_>> = labels.chain(expressions).collect();
    Some(requirements?.join(",")).filter(|text| !text.is_empty())
}

fn expression_text(expression: &v1::LabelSelectorRequirement) -> Option<String> {
    let v1::LabelSelectorRequirement {
        key,
        operator,
        values,
    } = expression;
    let values = values.join(",");
    match operator.as_str() {
        "In" => Some(format!("{key} in ({values})")),
        "NotIn" => Some(format!("{key} notin ({values})")),
        "Exists" => Some(key.clone()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
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
        let requirement =
            |key: &str, operator: &str, values: &[&str]| v1::LabelSelectorRequirement {
                key: key.into(),
                operator: operator.into(),
                values: values.iter().map(|value| (*value).into()).collect(),
            };
        let selector = v1::LabelSelector {
            match_labels: [("app".into(), "web".into())].into(),
            match_expressions: vec![
                requirement("tier", "In", &["a", "b"]),
                requirement("zone", "NotIn", &["c"]),
                requirement("new", "Exists", &[]),
                requirement("old", "DoesNotExist", &[]),
            ],
        };
        let text = "app=web,tier in (a,b),zone notin (c),new,!old";
        assert_eq!(selector_text(&selector).as_deref(), Some(text));
        assert_eq!(selector_text(&v1::LabelSelector::default()), None);
        let unknown = v1::LabelSelector {
            match_expressions: vec![requirement("k", "Near", &[])],
            ..v1::LabelSelector::default()
        };
        assert_eq!(selector_text(&unknown), None);
    }
}
