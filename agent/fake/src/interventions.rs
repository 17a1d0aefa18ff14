//! Changes of pods and nodes by tests and the demo, beside the calls of the API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    cluster::Cluster,
    commit,
    create::read_kind,
    delete,
    error::ApiError,
    kind::Kind,
    kubelet,
    object::Object,
    patch,
    state::{NodeState, State},
    store::ObjectKey,
    timeline::{LossStage, Task},
    validate, wake,
};

impl Cluster {
    /// Merges `status` into the status of a pod, as a kubelet would.
    ///
    /// # Errors
    /// 404 if there is no such pod; 400 if the result is no status.
    pub fn set_pod_status(
        &mut self,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<Object, ApiError> {
        let pod = self.state.pod(namespace, name)?;
        let mut new = Value::clone(&pod);
        patch::merge(&mut new["status"], status);
        validate::shape(Kind::Pod, &new)?;
        Ok(commit::change(&mut self.state, Kind::Pod, &pod, new))
    }

    /// Replaces the object of this name without validation: an API server of another version may have accepted it.
    ///
    /// # Errors
    /// 404 if there is none.
    pub fn replace_unchecked(&mut self, object: Value) -> Result<Object, ApiError> {
        let kind = read_kind(&object)?;
        let old = self.state.found(kind, &ObjectKey::of(&object))?;
        Ok(commit::change(&mut self.state, kind, &old, object))
    }

    /// Begins the deletion of a pod, as its eviction does.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn evict(&mut self, namespace: &str, name: &str) -> Result<(), ApiError> {
        let pod = self.state.pod(namespace, name)?;
        delete::delete_quietly(&mut self.state, Kind::Pod, &ObjectKey::of(&pod));
        Ok(())
    }

    /// Removes a pod at once, without its grace period and finalizers.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn remove_pod_now(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.state.pod(namespace, name)?;
        Ok(commit::remove(&mut self.state, Kind::Pod, &pod))
    }
}

impl Cluster {
    /// Stops a node from responding; [`crate::NodeLoss`] sets the consequences.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn fail_node(&mut self, name: &str) -> Result<(), ApiError> {
        let State {
            nodes,
            timeline,
            config,
            ..
        } = &mut self.state;
        let node = found(nodes, name)?;
        if node.down {
            return Ok(());
        }
        node.down = true;
        node.outage += 1;
        let outage = node.outage;
        for (delay, stage) in [
            (config.node_loss.unknown_after, LossStage::Unknown),
            (config.node_loss.evict_after, LossStage::Evict),
            (config.node_loss.remove_after, LossStage::Remove),
        ] {
            let node = name.to_owned();
            let lose = Task::LoseNode {
                node,
                outage,
                stage,
            };
            timeline.after(delay, lose);
        }
        Ok(())
    }

    /// Lets a node respond again: its pods run and become ready, and deleted pods stop.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn recover_node(&mut self, name: &str) -> Result<(), ApiError> {
        let state = &mut self.state;
        let node = found(&mut state.nodes, name)?;
        node.down = false;
        node.noticed = false;
        node.outage += 1;
        for pod in state.store.pods_on(name) {
            kubelet::revive(state, &pod);
        }
        wake::retry_unscheduled(state);
        Ok(())
    }
}

fn found<'a>(
    nodes: &'a mut BTreeMap<String, NodeState>,
    name: &str,
) -> Result<&'a mut NodeState, ApiError> {
    let node = nodes.get_mut(name);
    node.ok_or_else(|| ApiError::not_found(Kind::Node, name))
}
