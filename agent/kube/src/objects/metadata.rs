//! The metadata of all objects: names, owners and times.

use std::{borrow::Cow, collections::HashMap, fmt::Debug};

use agent_core::api::InvalidObject;
use decree_api::v1;
use jiff::Timestamp;
use prost::Message;
use prost_types::Timestamp as WireTimestamp;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{managers::Unread, projected::invalid};

/// 0001-01-01T00:00:00Z in seconds since the epoch: Go's zero time.
const ZERO_TIME_SECONDS: i64 = -62_135_596_800;

/// The metadata of an object, whose `managedFields` are read as `M`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
#[serde(bound(deserialize = "M: Message + Default + Debug + Deserialize<'de>"))]
pub(crate) struct ObjectMeta<M: Message + Default + Debug = Unread> {
    #[prost(string, optional, tag = "1")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) namespace: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) uid: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub(crate) resource_version: Option<String>,
    #[prost(int64, optional, tag = "7")]
    pub(crate) generation: Option<i64>,
    #[prost(message, optional, tag = "8")]
    pub(crate) creation_timestamp: Option<Time>,
    #[prost(message, optional, tag = "9")]
    pub(crate) deletion_timestamp: Option<Time>,
    #[prost(int64, optional, tag = "10")]
    pub(crate) deletion_grace_period_seconds: Option<i64>,
    #[prost(map = "string, string", tag = "11")]
    #[serde(deserialize_with = "texts")]
    pub(crate) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "12")]
    #[serde(deserialize_with = "texts")]
    pub(crate) annotations: HashMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    #[serde(deserialize_with = "or_default")]
    pub(crate) owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    #[serde(deserialize_with = "or_default")]
    pub(crate) finalizers: Vec<String>,
    #[prost(message, repeated, tag = "17")]
    #[serde(deserialize_with = "or_default")]
    pub(crate) managed_fields: Vec<M>,
}

#[derive(Clone, PartialEq, Message, Deserialize, Serialize)]
#[prost(prost_path = "crate::lossy")]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(crate) struct OwnerReference {
    #[prost(string, optional, tag = "1")]
    pub(crate) kind: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) uid: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) api_version: Option<String>,
    #[prost(bool, optional, tag = "6")]
    pub(crate) controller: Option<bool>,
    #[prost(bool, optional, tag = "7")]
    pub(crate) block_owner_deletion: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Time {
    #[prost(int64, optional, tag = "1")]
    pub(super) seconds: Option<i64>,
}

impl<M: Message + Default + Debug> ObjectMeta<M> {
    /// The metadata of an existing object, which has a name and a UID.
    pub(super) fn required(metadata: Option<Self>, noun: &str) -> Result<Self, InvalidObject> {
        let metadata = metadata.unwrap_or_default();
        let texts = [&metadata.namespace, &metadata.name, &metadata.uid];
        let [namespace, name, uid] = texts.map(|text| text.as_deref().unwrap_or_default());
        let required = [
            ("metadata.namespace", namespace),
            ("metadata.name", name),
            ("metadata.uid", uid),
        ];
        match required.iter().find(|(_, text)| text.is_empty()) {
            None => Ok(metadata),
            Some((field, _)) => Err(invalid(noun, [namespace, name], *field, "is required")),
        }
    }
}

impl OwnerReference {
    /// Returns the managing owner: the first whose `controller` is true.
    pub(super) fn managing(references: Vec<Self>) -> Option<v1::OwnerReference> {
        let mut references = references.into_iter();
        let found = references.find(|it| it.controller == Some(true))?;
        Some(v1::OwnerReference {
            api_version: found.api_version.unwrap_or_default(),
            kind: found.kind.unwrap_or_default(),
            name: found.name.unwrap_or_default(),
            uid: found.uid.unwrap_or_default(),
            block_owner_deletion: found.block_owner_deletion,
        })
    }
}

impl From<&v1::OwnerReference> for OwnerReference {
    fn from(reference: &v1::OwnerReference) -> Self {
        let reference = reference.clone();
        Self {
            kind: Some(reference.kind),
            name: Some(reference.name),
            uid: Some(reference.uid),
            api_version: Some(reference.api_version),
            controller: Some(true),
            block_owner_deletion: reference.block_owner_deletion,
        }
    }
}

impl Time {
    /// A time of the contract, to the second; Go's zero time counts as absent (spec 1.1).
    pub(super) fn project(time: Option<Self>) -> Option<WireTimestamp> {
        let seconds = time?.seconds?;
        (seconds != ZERO_TIME_SECONDS).then_some(WireTimestamp { seconds, nanos: 0 })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let time: Timestamp = text
            .parse()
            .map_err(|_| D::Error::custom("expected a time such as 2026-01-31T12:00:00Z"))?;
        let seconds = time.as_nanosecond().div_euclid(1_000_000_000);
        let seconds = i64::try_from(seconds).map_err(D::Error::custom)?;
        Ok(Self {
            seconds: Some(seconds),
        })
    }
}

/// Reads texts by name. A `null` is an empty text, as in Kubernetes.
pub(super) fn texts<'de, D>(deserializer: D) -> Result<HashMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts: HashMap<_, Option<_>> = or_default(deserializer)?;
    let texts = texts.into_iter();
    Ok(texts
        .map(|(name, text)| (name, text.unwrap_or_default()))
        .collect())
}

/// Reads a field whose `null` counts as absent, as in Kubernetes.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
