//! The projection of a node: most of its fields, such as its images, are skipped.

use agent_core::{api::InvalidObject, nodes::NodeFields};
use decree_api::v1;
use prost::Message;
use serde::Deserialize;

use super::{
    metadata::{ObjectMeta, or_default},
    projected::Projected,
};

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct Node {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<NodeSpec>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct NodeSpec {
    #[prost(bool, optional, tag = "4")]
    unschedulable: Option<bool>,
    #[prost(message, repeated, tag = "5")]
    #[serde(deserialize_with = "or_default")]
    taints: Vec<Taint>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct Taint {
    #[prost(string, optional, tag = "1")]
    key: Option<String>,
}

impl Projected for Node {
    const NOUN: &'static str = "node";
    type Into = Self;

    fn project(self) -> Result<Self, InvalidObject> {
        Ok(self)
    }
}

impl Node {
    pub(crate) fn resource_version(&self) -> &str {
        let metadata = self.metadata.as_ref();
        metadata
            .and_then(|it| it.resource_version.as_deref())
            .unwrap_or_default()
    }

    /// The fields that are sent.
    pub(crate) fn with(self, fields: &NodeFields) -> v1::Node {
        let metadata = self.metadata.unwrap_or_default();
        let spec = self.spec.unwrap_or_default();
        let mut labels = metadata.labels;
        labels.retain(|key, _| fields.labels.contains(key));
        let mut taints = spec.taints.iter().filter_map(|it| it.key.as_ref());
        v1::Node {
            name: metadata.name.unwrap_or_default(),
            unschedulable: spec.unschedulable == Some(true),
            leaving: taints.any(|key| fields.leaving_taints.contains(key)),
            labels,
        }
    }
}
