//! Nodes: where pods may go, and what becomes of them when a node does not answer.

use serde_json::{Value, json};

use crate::{
    Cluster, Object,
    error::ApiError,
    kind::Kind,
    object::{self, Condition, set_condition},
    store::Place,
    timeline::{LossStage, Task},
};

/// What the control plane and the world know of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeState {
    /// Its kubelet does not answer.
    down: bool,
    /// The control plane has noticed.
    noticed: bool,
    /// Numbers its outages.
    outage: u64,
}

impl Cluster {
    /// Stops a node from answering; [`crate::NodeLoss`] says what follows.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn fail_node(&mut self, name: &str) -> Result<(), ApiError> {
        let node = self.node_mut(name)?;
        if node.down {
            return Ok(());
        }
        node.down = true;
        node.outage += 1;
        let outage = node.outage;
        let loss = &self.config.node_loss;
        let stages = [
            (loss.unknown_after, LossStage::Unknown),
            (loss.evict_after, LossStage::Evict),
            (loss.remove_after, LossStage::Remove),
        ];
        for (delay, stage) in stages {
            let node = name.to_owned();
            self.timeline.after(
                delay,
                Task::LoseNode {
                    node,
                    outage,
                    stage,
                },
            );
        }
        Ok(())
    }

    /// Lets a node answer again: its pods run and become ready, those asked to go stop.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn recover_node(&mut self, name: &str) -> Result<(), ApiError> {
        let node = self.node_mut(name)?;
        node.down = false;
        node.noticed = false;
        node.outage += 1;
        self.mark_node(
            name,
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        );
        for pod in self.pods_on(name) {
            self.revive(&pod);
        }
        self.wake_unassigned();
        Ok(())
    }

    pub(crate) fn node_added(&mut self, name: &str) {
        self.nodes.insert(name.to_owned(), NodeState::default());
        self.mark_node(
            name,
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        );
        self.wake_unassigned();
    }

    /// Takes the pods of a node that is gone along, as the pod collector does.
    pub(crate) fn node_removed(&mut self, name: &str) {
        self.nodes.remove(name);
        for pod in self.pods_on(name) {
            self.end_grace(&pod);
        }
    }

    pub(crate) fn lose_node(&mut self, name: &str, outage: u64, stage: LossStage) {
        let Some(node) = self
            .nodes
            .get_mut(name)
            .filter(|node| node.outage == outage)
        else {
            return;
        };
        match stage {
            LossStage::Unknown => {
                node.noticed = true;
                let message = "Kubelet stopped posting node status.";
                self.mark_node(name, "Unknown", "NodeStatusUnknown", message);
                for pod in self.pods_on(name) {
                    self.lose_pod(&pod);
                }
            }
            LossStage::Evict => {
                for pod in self.pods_on(name) {
                    self.delete_quietly(Kind::Pod, &Place::of(&pod));
                }
            }
            LossStage::Remove => self.delete_quietly(Kind::Node, &Place::new("", name)),
        }
    }

    /// Returns whether the kubelet of a node answers. A node that the model does not know never does.
    pub(crate) fn is_up(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| !node.down)
    }

    /// Returns the node with the fewest pods, as far as the control plane thinks that it answers.
    pub(crate) fn choose_node(&self) -> Option<String> {
        let limit = self.config.pods_per_node_max.unwrap_or(usize::MAX);
        let fit = self.nodes.iter().filter(|(_, node)| !node.noticed);
        let counted = fit.map(|(name, _)| (self.store.count_on(name), name));
        let chosen = counted.filter(|(count, _)| *count < limit).min();
        chosen.map(|(_, name)| name.clone())
    }

    fn node_mut(&mut self, name: &str) -> Result<&mut NodeState, ApiError> {
        let node = self.nodes.get_mut(name);
        node.ok_or_else(|| ApiError::not_found(Kind::Node, name))
    }

    fn pods_on(&self, node: &str) -> Vec<Object> {
        let places = self.store.pods_on(node);
        let pods = places
            .iter()
            .filter_map(|place| self.store.find(Kind::Pod, place));
        pods.cloned().collect()
    }

    fn mark_node(&mut self, name: &str, status: &str, reason: &str, message: &str) {
        if let Some(node) = self.store.find(Kind::Node, &Place::new("", name)).cloned() {
            let mut new = Value::clone(&node);
            let condition = Condition {
                status,
                reason,
                message,
            };
            set_condition(&mut new, self.now(), "Ready", condition);
            self.change(Kind::Node, &node, new);
        }
    }

    fn lose_pod(&mut self, pod: &Object) {
        if object::has_ended(pod) {
            return;
        }
        let mut lost = Value::clone(pod);
        let condition = Condition {
            status: "False",
            ..Condition::default()
        };
        set_condition(&mut lost, self.now(), "Ready", condition);
        let status = object::fields(&mut lost, "status");
        status.insert("phase".to_owned(), json!("Unknown"));
        status.insert("reason".to_owned(), json!("NodeLost"));
        let message = format!(
            "Node {} which was running pod {} is unresponsive",
            object::node(pod),
            object::name(pod)
        );
        status.insert("message".to_owned(), message.into());
        self.change(Kind::Pod, pod, lost);
    }
}
