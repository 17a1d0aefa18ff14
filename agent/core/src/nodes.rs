//! The nodes of the cluster, for preferences that depend on them.
//!
//! A node is state without versions: the newest news of a node counts. The agent keeps the nodes over sessions, and drops news that changes
//! no field that is sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use decree_api::v1;

use crate::api::ApiError;

/// The capability in Hello of an agent that sends nodes.
pub(crate) const CAPABILITY: &str = "nodes";

/// The most labels of a node that are sent, by the contract.
pub const LABELS_MAX: usize = 8;

/// News of the nodes. A stream begins with all nodes, also after a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeEvent {
    /// All nodes.
    Listed(Vec<v1::Node>),
    /// A node that is there, or has changed.
    Applied(v1::Node),
    /// The name of a node that is gone.
    Deleted(String),
}

/// The next events, or the verb and the error of a request that failed.
pub type NodeNews = Result<Vec<NodeEvent>, (&'static str, ApiError)>;

/// The fields of nodes that depend on settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFields {
    /// The keys of the taints of nodes whose pods will be evicted.
    pub leaving_taints: Vec<String>,
    /// The keys of the labels that are sent.
    pub labels: Vec<String>,
}

/// What is announced for a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Nothing.
    #[default]
    Stays,
    /// Its node is cordoned: somebody may evict it.
    Cordoned,
    /// Somebody will evict it.
    Leaving,
}

/// The nodes by name, and the names of nodes that pods have and the stream does not show. What a node announced for its pods stays true
/// after it is gone, until they are. Owned and changed by one [`Pods`](crate::view::pods::Pods).
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    by_name: BTreeMap<Arc<String>, (Option<v1::Node>, Hint)>,
    /// Whether all nodes have come.
    pub(crate) is_complete: bool,
}

/// The difference that events make.
#[derive(Debug, Default)]
pub(crate) struct NodeChanges {
    /// The new state of nodes by name; `None` for a node that is gone.
    pub(crate) nodes: BTreeMap<String, Option<v1::Node>>,
    /// The nodes whose pods have another [`Hint`].
    pub(crate) turned: BTreeSet<Arc<String>>,
    /// Whether all nodes are known now, and were not before.
    pub(crate) completes: bool,
}

impl Default for NodeFields {
    /// The taints of drains by Karpenter and cluster-autoscaler, and the zone.
    fn default() -> Self {
        Self {
            leaving_taints: vec![
                "karpenter.sh/disrupted".to_owned(),
                "ToBeDeletedByClusterAutoscaler".to_owned(),
            ],
            labels: vec!["topology.kubernetes.io/zone".to_owned()],
        }
    }
}

impl Nodes {
    pub(crate) fn handle(&mut self, events: Vec<NodeEvent>) -> NodeChanges {
        let mut changes = NodeChanges::default();
        for event in events {
            match event {
                NodeEvent::Listed(nodes) => {
                    let known = self.by_name.values().filter_map(|(node, _)| node.as_ref());
                    let mut gone: BTreeSet<_> = known.map(|node| node.name.clone()).collect();
                    for node in nodes {
                        gone.remove(&node.name);
                        self.set(node.name.clone(), Some(node), &mut changes);
                    }
                    for name in gone {
                        self.set(name, None, &mut changes);
                    }
                    changes.completes |= !std::mem::replace(&mut self.is_complete, true);
                }
                NodeEvent::Applied(node) => {
                    self.set(node.name.clone(), Some(node), &mut changes);
                }
                NodeEvent::Deleted(name) => self.set(name, None, &mut changes),
            }
        }
        if !changes.nodes.is_empty() {
            self.sweep();
        }
        changes
    }

    /// Forgets the unknown nodes whose names no pod has.
    pub(crate) fn sweep(&mut self) {
        let is_named = |name: &Arc<String>| Arc::strong_count(name) > 1;
        self.by_name
            .retain(|name, (node, _)| node.is_some() || is_named(name));
    }

    /// Forgets an unknown node if only the caller has the name, which is that of a pod that is gone.
    pub(crate) fn release(&mut self, name: &Arc<String>) {
        let is_last = Arc::strong_count(name) == 2; // The map has the other.
        let known = self.by_name.get(name).filter(|_| is_last);
        if known.is_some_and(|(node, _)| node.is_none()) {
            self.by_name.remove(name);
        }
    }

    fn set(&mut self, name: String, node: Option<v1::Node>, changes: &mut NodeChanges) {
        let key = self.shared(&name);
        let (known, hint) = self.by_name.entry(Arc::clone(&key)).or_default();
        if *known == node {
            return;
        }
        let before = std::mem::replace(hint, node.as_ref().map_or(*hint, Hint::of));
        if before != *hint {
            changes.turned.insert(key);
        }
        known.clone_from(&node);
        changes.nodes.insert(name, node);
    }

    /// The name of a node, shared with all that have the same.
    pub(crate) fn shared(&mut self, name: &String) -> Arc<String> {
        if let Some((known, _)) = self.by_name.get_key_value(name) {
            return Arc::clone(known);
        }
        let name = Arc::new(name.clone());
        self.by_name.insert(Arc::clone(&name), (None, Hint::Stays));
        name
    }

    /// What a node announces for its pods; an unknown node announces nothing.
    pub(crate) fn hint(&self, name: &String) -> Hint {
        self.by_name
            .get(name)
            .map_or(Hint::Stays, |(_, hint)| *hint)
    }

    #[cfg(test)]
    pub(crate) fn count_names(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Option<v1::Node>> {
        let known = self.by_name.values().filter_map(|(node, _)| node.as_ref());
        known
            .map(|node| (node.name.clone(), Some(node.clone())))
            .collect()
    }
}

impl Hint {
    const fn of(node: &v1::Node) -> Self {
        match node {
            v1::Node { leaving: true, .. } => Self::Leaving,
            v1::Node {
                unschedulable: true,
                ..
            } => Self::Cordoned,
            v1::Node { .. } => Self::Stays,
        }
    }
}
