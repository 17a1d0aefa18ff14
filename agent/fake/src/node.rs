//! Nodes that do not respond, and the consequences for their pods.

use serde_json::{Value, json};

use crate::{
    commit, delete,
    error::ApiError,
    kind::Kind,
    kubelet,
    object::{self, Condition, Object, set_condition},
    state::{NodeState, State},
    store::ObjectKey,
    timeline::{LossStage, Task},
    wake,
};

/// Stops a node from responding, and schedules the consequences.
pub(crate) fn fail_node(state: &mut State, name: &str) -> Result<(), ApiError> {
    let node = node_mut(state, name)?;
    if node.down {
        return Ok(());
    }
    node.down = true;
    node.outage += 1;
    let outage = node.outage;
    let loss = &state.config.node_loss;
    let stages = [
        (loss.unknown_after, LossStage::Unknown),
        (loss.evict_after, LossStage::Evict),
        (loss.remove_after, LossStage::Remove),
    ];
    for (delay, stage) in stages {
        let node = name.to_owned();
        state.timeline.after(
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

/// Lets a node respond again.
pub(crate) fn recover_node(state: &mut State, name: &str) -> Result<(), ApiError> {
    let node = node_mut(state, name)?;
    node.down = false;
    node.noticed = false;
    node.outage += 1;
    commit::set_node_status(
        state,
        name,
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    );
    for pod in state.pods_on(name) {
        kubelet::revive(state, &pod);
    }
    wake::retry_unscheduled(state);
    Ok(())
}

pub(crate) fn lose_node(state: &mut State, name: &str, outage: u64, stage: LossStage) {
    let Some(node) = state
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
            commit::set_node_status(state, name, "Unknown", "NodeStatusUnknown", message);
            for pod in state.pods_on(name) {
                lose_pod(state, &pod);
            }
        }
        LossStage::Evict => {
            for pod in state.pods_on(name) {
                delete::delete_quietly(state, Kind::Pod, &ObjectKey::of(&pod));
            }
        }
        LossStage::Remove => delete::delete_quietly(state, Kind::Node, &ObjectKey::new("", name)),
    }
}

fn node_mut<'a>(state: &'a mut State, name: &str) -> Result<&'a mut NodeState, ApiError> {
    let node = state.nodes.get_mut(name);
    node.ok_or_else(|| ApiError::not_found(Kind::Node, name))
}

fn lose_pod(state: &mut State, pod: &Object) {
    if object::has_ended(pod) {
        return;
    }
    let mut lost = Value::clone(pod);
    let condition = Condition {
        status: "False",
        ..Condition::default()
    };
    set_condition(&mut lost, state.now(), "Ready", condition);
    let status = object::fields(&mut lost, "status");
    status.insert("phase".to_owned(), json!("Unknown"));
    status.insert("reason".to_owned(), json!("NodeLost"));
    let message = format!(
        "Node {} which was running pod {} is unresponsive",
        object::node(pod),
        object::name(pod)
    );
    status.insert("message".to_owned(), message.into());
    commit::change(state, Kind::Pod, pod, lost);
}
