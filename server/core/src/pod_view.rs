//! A pod as it arrives. Its texts belong to the sender; the index copies only the new ones.

use std::sync::{Arc, LazyLock};

use crate::{
    labels::Labels,
    object::{Key, OwnerReference, Pod, PodState, ResourceVersion, Timestamp, Uid},
};

/// The kind of an owner reference to a ReplicaSet; the API group is not checked (spec 3.3).
pub(crate) const OWNER_KIND: &str = "ReplicaSet";

/// A [`Pod`] with borrowed texts. Most messages about pods repeat known values, which are compared and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of a pod")]
pub struct PodView<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub version: Option<ResourceVersion>,
    /// Sorted by key, each key once.
    pub labels: &'a [(&'a str, &'a str)],
    pub controller: Option<OwnerView<'a>>,
    pub node: Option<&'a str>,
    pub waiting: Option<&'a str>,
    pub deleted: Option<Timestamp>,
    pub state: PodState,
}

/// An [`OwnerReference`] with borrowed texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of a reference")]
pub struct OwnerView<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub block_owner_deletion: Option<bool>,
}

impl PodView<'_> {
    /// Copies the pod.
    pub fn to_pod(&self) -> Pod {
        Pod {
            namespace: self.namespace.into(),
            name: self.name.into(),
            uid: Uid(self.uid.into()),
            version: self.version,
            labels: self.to_labels(),
            controller: self.controller.map(OwnerView::to_owner),
            node: self.node.map(Arc::from),
            waiting: self.waiting.map(Arc::from),
            deleted: self.deleted,
            state: self.state,
        }
    }

    pub(crate) fn to_labels(self) -> Labels {
        let labels = self.labels.iter();
        labels
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    pub(crate) fn has_labels(&self, labels: &Labels) -> bool {
        labels.len() == self.labels.len() && labels.texts().eq(self.labels.iter().copied())
    }
}

impl OwnerView<'_> {
    /// Whether the kind is that of a ReplicaSet; the API group is not checked.
    pub fn is_replica_set(self) -> bool {
        self.kind == OWNER_KIND
    }

    /// The same reference, as one to a ReplicaSet.
    #[must_use]
    pub const fn to_replica_set(self) -> Self {
        Self {
            kind: OWNER_KIND,
            ..self
        }
    }

    /// Copies the reference.
    pub fn to_owner(self) -> OwnerReference {
        OwnerReference {
            api_version: common(self.api_version),
            kind: common(self.kind),
            name: self.name.into(),
            uid: Uid(self.uid.into()),
            block_owner_deletion: self.block_owner_deletion,
        }
    }
}

/// Returns the text; nearly all references have the same one, and share it.
fn common(text: &str) -> Arc<str> {
    static COMMON: LazyLock<[Arc<str>; 3]> =
        LazyLock::new(|| ["apps/v1", "ReplicaSet", "Deployment"].map(Arc::from));
    let known = COMMON.iter().find(|known| ***known == *text);
    known.map_or_else(|| text.into(), Arc::clone)
}

impl Pod {
    /// Calls `read` with a view of the pod.
    pub fn viewed<T>(&self, read: impl FnOnce(&PodView<'_>) -> T) -> T {
        let labels: Vec<_> = self.labels.texts().collect();
        read(&PodView {
            namespace: &self.namespace,
            name: &self.name,
            uid: &self.uid.0,
            version: self.version,
            labels: &labels,
            controller: self.controller.as_ref().map(OwnerReference::view),
            node: self.node.as_deref(),
            waiting: self.waiting.as_deref(),
            deleted: self.deleted,
            state: self.state,
        })
    }
}

impl OwnerReference {
    /// The controller reference of a pod of a ReplicaSet (spec 5.3).
    pub(crate) fn to_replica_set(key: &Key) -> Self {
        Self {
            api_version: common("apps/v1"),
            kind: common(OWNER_KIND),
            name: Arc::clone(&key.name),
            uid: key.uid.clone(),
            block_owner_deletion: Some(true),
        }
    }

    /// Replaces texts that all references have by shared ones.
    pub(crate) fn share(&mut self) {
        self.api_version = common(&self.api_version);
        self.kind = common(&self.kind);
    }

    /// A view of the reference.
    pub fn view(&self) -> OwnerView<'_> {
        OwnerView {
            api_version: &self.api_version,
            kind: &self.kind,
            name: &self.name,
            uid: &self.uid.0,
            block_owner_deletion: self.block_owner_deletion,
        }
    }
}
