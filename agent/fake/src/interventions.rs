//! Changes of pods and nodes by tests and the demo, beside the calls of the API.

use serde_json::Value;

use crate::{
    cluster::Cluster,
    commit,
    create::read_kind,
    error::ApiError,
    kind::Kind,
    kubelet::{self, Containers},
    node,
    object::Object,
    patch,
    store::ObjectKey,
    validate,
};

// === impl Cluster: pods ===

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

    /// Ends a pod with a failure, as an eviction by its kubelet does; the object stays.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn fail_pod(
        &mut self,
        namespace: &str,
        name: &str,
        reason: &str,
    ) -> Result<Object, ApiError> {
        let pod = self.state.pod(namespace, name)?;
        let mut failed =
            kubelet::observe(&self.state, &pod, Containers::Stopped { exit_code: 137 });
        failed["status"]["reason"] = reason.into();
        Ok(commit::change(&mut self.state, Kind::Pod, &pod, failed))
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

    /// Removes a pod at once, without its grace period and finalizers.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn remove_pod_now(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.state.pod(namespace, name)?;
        Ok(commit::remove(&mut self.state, Kind::Pod, &pod))
    }
}

// === impl Cluster: nodes ===

impl Cluster {
    /// Stops a node from responding; [`crate::NodeLoss`] sets the consequences.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn fail_node(&mut self, name: &str) -> Result<(), ApiError> {
        node::fail_node(&mut self.state, name)
    }

    /// Lets a node respond again: its pods run and become ready, and deleted pods stop.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn recover_node(&mut self, name: &str) -> Result<(), ApiError> {
        node::recover_node(&mut self.state, name)
    }
}
