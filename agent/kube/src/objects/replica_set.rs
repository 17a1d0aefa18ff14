//! The projection of a ReplicaSet, and its template for writing.

use std::collections::HashMap;

use agent_core::{
    api::{self, InvalidObject, Template},
    budget::resume::RESUME_ANNOTATION,
    preferences,
};
use bytes::Bytes;
use decree_api::v1;
use prost::Message;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{
    managers::{self, ManagedFields},
    metadata::{ObjectMeta, OwnerReference, Time, or_default, texts},
    projected::{Projected, invalid},
    template,
};

/// How many bytes are kept of the resume annotation.
const RESUME_BYTES_MAX: usize = 256;

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct ReplicaSet {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta<ManagedFields>>,
    #[prost(message, optional, tag = "2")]
    spec: Option<ReplicaSetSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<ReplicaSetStatus>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ReplicaSetSpec {
    #[prost(int32, optional, tag = "1")]
    replicas: Option<i32>,
    #[prost(message, optional, tag = "2")]
    selector: Option<LabelSelector>,
    /// The template verbatim, in the encoding of the whole document.
    #[prost(bytes = "bytes", optional, tag = "3")]
    #[serde(deserialize_with = "verbatim")]
    template: Option<Bytes>,
    #[prost(int32, optional, tag = "4")]
    min_ready_seconds: Option<i32>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct LabelSelector {
    #[prost(map = "string, string", tag = "1")]
    #[serde(deserialize_with = "texts")]
    match_labels: HashMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "or_default")]
    match_expressions: Vec<LabelSelectorRequirement>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct LabelSelectorRequirement {
    #[prost(string, optional, tag = "1")]
    key: Option<String>,
    #[prost(string, optional, tag = "2")]
    operator: Option<String>,
    #[prost(string, repeated, tag = "3")]
    #[serde(deserialize_with = "or_default")]
    values: Vec<String>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ReplicaSetStatus {
    #[prost(int32, optional, tag = "1")]
    replicas: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    fully_labeled_replicas: Option<i32>,
    #[prost(int64, optional, tag = "3")]
    observed_generation: Option<i64>,
    #[prost(int32, optional, tag = "4")]
    ready_replicas: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    available_replicas: Option<i32>,
    #[prost(message, repeated, tag = "6")]
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<ReplicaSetCondition>,
    #[prost(int32, optional, tag = "7")]
    terminating_replicas: Option<i32>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct ReplicaSetCondition {
    #[prost(string, optional, tag = "1")]
    r#type: Option<String>,
    #[prost(string, optional, tag = "2")]
    status: Option<String>,
    #[prost(message, optional, tag = "3")]
    last_transition_time: Option<Time>,
    #[prost(string, optional, tag = "4")]
    reason: Option<String>,
    #[prost(string, optional, tag = "5")]
    message: Option<String>,
}

impl Projected for ReplicaSet {
    const NOUN: &'static str = "replica set";
    type Into = api::ReplicaSet;

    fn project(self) -> Result<api::ReplicaSet, InvalidObject> {
        let mut metadata = ObjectMeta::required(self.metadata, Self::NOUN)?;
        let spec = self.spec.unwrap_or_default();
        let template = spec.template.unwrap_or_default();
        let namespace = metadata.namespace.unwrap_or_default();
        let name = metadata.name.unwrap_or_default();
        let template_labels = template::labels(&template)
            .map_err(|(field, detail)| invalid(Self::NOUN, [&namespace, &name], field, detail))?;
        let resume = metadata.annotations.remove(RESUME_ANNOTATION);
        let mut resume = resume.unwrap_or_default();
        resume.truncate(resume.floor_char_boundary(RESUME_BYTES_MAX));
        let (preferences, ignored_annotations) = preferences::take(&mut metadata.annotations);
        let projected = v1::ReplicaSet {
            namespace,
            name,
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            deletion_timestamp: Time::project(metadata.deletion_timestamp),
            controller: OwnerReference::managing(metadata.owner_references),
            replicas: spec.replicas,
            min_ready_seconds: spec.min_ready_seconds.unwrap_or_default(),
            selector: spec.selector.map(LabelSelector::project),
            template_labels,
            status: Some(self.status.unwrap_or_default().project()),
            resume,
            preferences,
            ignored_annotations,
            replicas_manager: managers::of_replicas(metadata.managed_fields),
        };
        let template = (!template.is_empty()).then(|| Template::new(template.as_ref()));
        Ok(api::ReplicaSet {
            projected,
            template,
        })
    }
}

impl LabelSelector {
    /// The server judges whether the selector is valid.
    fn project(self) -> v1::LabelSelector {
        let requirement = |it: LabelSelectorRequirement| v1::LabelSelectorRequirement {
            key: it.key.unwrap_or_default(),
            operator: it.operator.unwrap_or_default(),
            values: it.values,
        };
        let expressions = self.match_expressions.into_iter();
        v1::LabelSelector {
            match_labels: self.match_labels,
            match_expressions: expressions.map(requirement).collect(),
        }
    }
}

impl ReplicaSetStatus {
    fn project(self) -> v1::ReplicaSetStatus {
        let condition = |it: ReplicaSetCondition| v1::ReplicaSetCondition {
            r#type: it.r#type.unwrap_or_default(),
            status: it.status.unwrap_or_default(),
            last_transition_time: Time::project(it.last_transition_time),
            reason: it.reason.unwrap_or_default(),
            message: it.message.unwrap_or_default(),
        };
        v1::ReplicaSetStatus {
            replicas: self.replicas.unwrap_or_default(),
            fully_labeled_replicas: self.fully_labeled_replicas.unwrap_or_default(),
            ready_replicas: self.ready_replicas.unwrap_or_default(),
            available_replicas: self.available_replicas.unwrap_or_default(),
            terminating_replicas: self.terminating_replicas,
            observed_generation: self.observed_generation.unwrap_or_default(),
            conditions: self.conditions.into_iter().map(condition).collect(),
        }
    }
}

pub(super) fn verbatim<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    let text: Option<Box<RawValue>> = Option::deserialize(deserializer)?;
    Ok(text.map(|text| Bytes::from(Box::<str>::from(text).into_string())))
}
