//! Nodes that do not respond, and the consequences for their pods.

use serde_json::{Value, json};

use crate::{
    commit, delete,
    kind::Kind,
    object::{self, Object, set_condition},
    state::State,
    store::ObjectKey,
    timeline::LossStage,
};

pub(crate) fn lose_node(state: &mut State, name: &str, outage: u64, stage: LossStage) {
    let node = state.nodes.get_mut(name);
    let Some(node) = node.filter(|node| node.outage == outage) else {
        return;
    };
    match stage {
        LossStage::Unknown => {
            node.noticed = true;
            for pod in state.store.pods_on(name) {
                lose_pod(state, &pod);
            }
        }
        LossStage::Evict => {
            for pod in state.store.pods_on(name) {
                delete::delete_quietly(state, Kind::Pod, &ObjectKey::of(&pod));
            }
        }
        LossStage::Remove => delete::delete_quietly(state, Kind::Node, &ObjectKey::new("", name)),
    }
}

fn lose_pod(state: &mut State, pod: &Object) {
    if object::has_ended(pod) {
        return;
    }
    let mut lost = Value::clone(pod);
    set_condition(&mut lost, state.now(), "Ready", "False", "");
    let status = object::fields(&mut lost, "status");
    status.insert("phase".to_owned(), json!("Unknown"));
    status.insert("reason".to_owned(), json!("NodeLost"));
    commit::change(state, Kind::Pod, pod, lost);
}
