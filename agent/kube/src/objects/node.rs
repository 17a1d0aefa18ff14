//! The projection of a node, from JSON alone: most of its fields, such as its images, are skipped.

use std::collections::HashMap;

use agent_core::nodes::NodeFields;
use decree_api::v1;
use serde::Deserialize;

use super::metadata::{or_default, texts};
use crate::follow::Followed;

#[derive(Deserialize)]
pub(crate) struct Node {
    metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    /// Absent in a bookmark.
    name: String,
    resource_version: String,
    #[serde(deserialize_with = "texts")]
    labels: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
    #[serde(deserialize_with = "or_default")]
    taints: Vec<Taint>,
}

#[derive(Deserialize)]
struct Taint {
    key: String,
}

impl Followed for Node {
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
}

impl Node {
    /// The fields that are sent.
    pub(crate) fn with(self, fields: &NodeFields) -> v1::Node {
        let (mut metadata, spec) = (self.metadata, self.spec);
        let mut taints = spec.taints.iter();
        metadata.labels.retain(|key, _| fields.labels.contains(key));
        v1::Node {
            name: metadata.name,
            unschedulable: spec.unschedulable,
            leaving: taints.any(|it| fields.leaving_taints.contains(&it.key)),
            labels: metadata.labels,
        }
    }
}
