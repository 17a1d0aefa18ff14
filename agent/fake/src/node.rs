//! Nodes that do not answer, and what becomes of their pods.

use serde_json::{Value, json};

use crate::{
    error::ApiError,
    kind::Kind,
    object::{self, Condition, Object, set_condition},
    state::{NodeState, State},
    store::Place,
    timeline::{LossStage, Task},
};

// === impl State ===

impl State {
    /// Stops a node from answering, and puts what follows on the timeline.
    pub(crate) fn fail_node(&mut self, name: &str) -> Result<(), ApiError> {
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

    /// Lets a node answer again.
    pub(crate) fn recover_node(&mut self, name: &str) -> Result<(), ApiError> {
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

    fn node_mut(&mut self, name: &str) -> Result<&mut NodeState, ApiError> {
        let node = self.nodes.get_mut(name);
        node.ok_or_else(|| ApiError::not_found(Kind::Node, name))
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
