//! The state of the cluster at a moment: its objects, its time, its watches, and its faults.
//!
//! Each module above this one has the functions of its layer on [`State`], and calls only functions of the layers below:
//!
//! ```text
//! cluster, interventions ─▶ controllers ─▶ node, kubelet ───┐
//!            └────────────▶ create, update, delete ─────────┴▶ commit ─▶ wake, quota ─▶ state
//! ```

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    config::ClusterConfig,
    error::ApiError,
    faults::Faults,
    kind::Kind,
    object::{self, Object},
    random::Random,
    store::{ObjectKey, Store},
    timeline::Timeline,
    watch::Watches,
};

/// The state of a cluster. Owned by one [`Cluster`](crate::Cluster).
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) config: ClusterConfig,
    pub(crate) store: Store,
    pub(crate) timeline: Timeline,
    pub(crate) nodes: BTreeMap<String, NodeState>,
    /// The source of UIDs; separate from `chance`, so that jitter changes no UID.
    pub(crate) identity: Random,
    pub(crate) chance: Random,
    pub(crate) watches: Watches,
    pub(crate) faults: Faults,
}

/// The state of a node, for the control plane and in reality.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeState {
    /// Its kubelet does not respond.
    pub(crate) down: bool,
    /// The control plane has noticed the outage.
    pub(crate) noticed: bool,
    /// The number of the node's last outage.
    pub(crate) outage: u64,
}

/// All objects of a kind, sorted by namespace and name, and the version of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The objects.
    pub items: Vec<Object>,
    /// The version of the list; a watch from here misses nothing.
    pub version: u64,
}

impl State {
    pub(crate) fn new(config: ClusterConfig) -> Self {
        Self {
            store: Store::default(),
            timeline: Timeline::new(config.start),
            nodes: BTreeMap::new(),
            identity: Random::new(config.seed),
            chance: Random::new(config.seed ^ u64::from_be_bytes(*b"faulty!!")),
            watches: Watches::new(config.watch_log_max, config.bookmark_every),
            faults: Faults::default(),
            config,
        }
    }

    pub(crate) const fn now(&self) -> Timestamp {
        self.timeline.now()
    }

    pub(crate) fn found(&self, kind: Kind, key: &ObjectKey) -> Result<Object, ApiError> {
        let object = self.store.find(kind, key).cloned();
        object.ok_or_else(|| ApiError::not_found(kind, key.name()))
    }

    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        self.found(Kind::Pod, &ObjectKey::new(namespace, name))
    }

    pub(crate) fn is_terminating(&self, namespace: &str) -> bool {
        let key = ObjectKey::new("", namespace);
        let namespace = self.store.find(Kind::Namespace, &key);
        namespace.is_some_and(|it| object::is_deleting(it))
    }
}
