//! Objects from a few words: `name=p-{i} label.app=web node=n*3900000`.

use std::{collections::HashMap, str::FromStr};

use decree_api::v1;

/// The parameters of a step: `key=value`, where `x*300` means 300 x, `{i}` the number of the object, and `{i/100}` its hundreds.
#[derive(Clone, Debug, Default)]
pub struct Template(Vec<(String, String)>);

impl Template {
    /// Reads the parameters from the words of a step.
    ///
    /// # Panics
    /// If a word is not a parameter.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let pairs = words.into_iter().map(|word| {
            let (key, value) = word.split_once('=').expect("a parameter is key=value");
            (key.to_owned(), repeated(value))
        });
        Self(pairs.collect())
    }

    /// Returns a parameter of the object of this number.
    pub fn text(&self, key: &str, number: u64) -> Option<String> {
        let value = &self.0.iter().find(|(have, _)| have == key)?.1;
        let value = value.replace("{i}", &number.to_string());
        Some(value.replace("{i/100}", &(number / 100).to_string()))
    }

    /// Returns a parameter as a number or another parsed value.
    ///
    /// # Panics
    /// If the value cannot be parsed.
    pub fn value<T: FromStr>(&self, key: &str, number: u64) -> Option<T> {
        let text = self.text(key, number)?;
        let read = text.parse().ok();
        assert!(read.is_some(), "{key}={text} cannot be read");
        read
    }

    fn text_or(&self, key: &str, number: u64, other: &str) -> String {
        self.text(key, number).unwrap_or_else(|| other.to_owned())
    }

    /// Returns an object reference.
    pub fn reference(&self, number: u64) -> v1::ObjectRef {
        v1::ObjectRef {
            namespace: self.text_or("namespace", number, "default"),
            name: self.text_or("name", number, &format!("o-{number}")),
            uid: self.text_or("uid", number, &format!("u-{number}")),
        }
    }

    /// Returns a pod; with `bare`, only the given fields are set.
    pub fn pod(&self, number: u64) -> v1::Pod {
        if self.value("bare", number) == Some(true) {
            return v1::Pod {
                name: self.text_or("name", number, ""),
                ..v1::Pod::default()
            };
        }
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = self.reference(number);
        let owner = self.text("owner", number);
        v1::Pod {
            namespace,
            name,
            uid,
            resource_version: self.text_or("version", number, "10"),
            labels: self.labels(number),
            controller: owner.map(|name| v1::OwnerReference {
                api_version: self.text_or("api", number, "apps/v1"),
                kind: self.text_or("owner-kind", number, "ReplicaSet"),
                uid: self.text_or("owner-uid", number, &format!("{name}-uid")),
                name,
                block_owner_deletion: Some(true),
            }),
            creation_timestamp: self.time("created", number),
            deletion_timestamp: self.time("deleted", number),
            node_name: self.text_or("node", number, ""),
            phase: self.value("phase", number).unwrap_or(3),
            ready: self.value("ready", number).map(|ready| v1::ReadyCondition {
                ready,
                last_transition_time: None,
            }),
            deletion_cost: self.text("cost", number),
            leaving: self.value("leaving", number).unwrap_or(false),
            advised_cost: self.text("advised", number),
            max_regular_restarts: self.value("restarts", number).unwrap_or(0),
            max_sidecar_restarts: self.value("sidecar-restarts", number).unwrap_or(0),
            disruption_target: false,
            waiting_reason: String::new(),
        }
    }

    /// Returns a ReplicaSet; with `bare`, as [`Self::pod`].
    pub fn replica_set(&self, number: u64) -> v1::ReplicaSet {
        if self.value("bare", number) == Some(true) {
            return v1::ReplicaSet {
                name: self.text_or("name", number, ""),
                ..v1::ReplicaSet::default()
            };
        }
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = self.reference(number);
        v1::ReplicaSet {
            namespace,
            name,
            uid,
            resource_version: self.text_or("version", number, "10"),
            generation: self.value("generation", number).unwrap_or(1),
            replicas: Some(self.value("replicas", number).unwrap_or(0)),
            min_ready_seconds: self.value("min-ready", number).unwrap_or(0),
            selector: self.selector(number),
            template_labels: self.template_labels(number),
            controller: self.text("parent", number).map(|name| v1::OwnerReference {
                api_version: "apps/v1".to_owned(),
                kind: "Deployment".to_owned(),
                uid: format!("{name}-uid"),
                name,
                block_owner_deletion: Some(true),
            }),
            deletion_timestamp: self.time("deleted", number),
            status: Some(v1::ReplicaSetStatus {
                observed_generation: 1,
                terminating_replicas: Some(0),
                conditions: self.conditions(number),
                ..v1::ReplicaSetStatus::default()
            }),
            resume: String::new(),
            preferences: None,
            ignored_annotations: Vec::new(),
            replicas_manager: String::new(),
        }
    }

    /// The labels `label.KEY=VALUE`, and `labels` others.
    fn labels(&self, number: u64) -> HashMap<String, String> {
        let named = self.0.iter().filter_map(|(key, _)| {
            let label = key.strip_prefix("label.")?;
            Some((label.to_owned(), self.text(key, number)?))
        });
        let more = self.value("labels", number).unwrap_or(0_u64);
        let value = self.text_or("label-value", number, "x");
        let part = |key: &str| self.text_or(key, number, "");
        let prefix = part("label-prefix") + &part("label-prefix-end");
        let more = (0..more).map(|at| (format!("{prefix}l-{at}"), value.clone()));
        named.chain(more).collect()
    }

    /// The labels of a ReplicaSet's template: [`Self::labels`], and the labels of its selector, because the server ignores a
    /// ReplicaSet whose template does not match.
    fn template_labels(&self, number: u64) -> HashMap<String, String> {
        if self.text("template", number).as_deref() == Some("none") {
            return HashMap::new();
        }
        let selector = self.selector(number).unwrap_or_default();
        let demands = selector.match_expressions.into_iter();
        let demands = demands.filter(|one| matches!(one.operator.as_str(), "In" | "Exists"));
        let demanded = demands.map(|one| {
            let value = one.values.into_iter().next();
            (one.key, value.unwrap_or_default())
        });
        let asked = demanded.chain(selector.match_labels);
        asked.chain(self.labels(number)).collect()
    }

    /// The selector: `match.KEY=VALUE`, and `requirements` requirements with `operator` and `values` values on `key`.
    fn selector(&self, number: u64) -> Option<v1::LabelSelector> {
        match self.text("selector", number).as_deref() {
            Some("none") => return None,
            Some("empty") => return Some(v1::LabelSelector::default()),
            Some(_) | None => {}
        }
        let named = self.0.iter().filter_map(|(key, _)| {
            let label = key.strip_prefix("match.")?;
            Some((label.to_owned(), self.text(key, number)?))
        });
        let requirements = self.value("requirements", number).unwrap_or(0_u64);
        let values = self.value("values", number).unwrap_or(0_u64);
        let requirement = |at: u64| v1::LabelSelectorRequirement {
            key: self.text_or("key", number, &format!("k-{at}")),
            operator: self.text_or("operator", number, "DoesNotExist"),
            values: (0..values)
                .map(|value| self.text_or("value", number, &format!("v-{value}")))
                .collect(),
        };
        Some(v1::LabelSelector {
            match_labels: named.collect(),
            match_expressions: (0..requirements).map(requirement).collect(),
        })
    }

    fn conditions(&self, number: u64) -> Vec<v1::ReplicaSetCondition> {
        let count = self.value("conditions", number).unwrap_or(0_u64);
        let condition = |at: u64| v1::ReplicaSetCondition {
            r#type: self.text_or("type", number, &format!("Type-{at}")),
            status: "True".to_owned(),
            last_transition_time: None,
            reason: self.text_or("reason", number, "Because"),
            message: self.text_or("message", number, ""),
        };
        (0..count).map(condition).collect()
    }

    fn time(&self, key: &str, number: u64) -> Option<prost_types::Timestamp> {
        let seconds = self.value(key, number)?;
        let nanos = self.value("nanos", number).unwrap_or(0);
        Some(prost_types::Timestamp { seconds, nanos })
    }
}

/// Expands `x*300`.
fn repeated(value: &str) -> String {
    let parts = value.split_once('*');
    let times = parts.and_then(|(text, times)| Some((text, times.parse::<usize>().ok()?)));
    times.map_or_else(|| value.to_owned(), |(text, times)| text.repeat(times))
}
