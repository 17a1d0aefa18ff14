//! What tests and the demo do to pods and nodes, beside the calls of the API.

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
    store::Place,
    validate,
};

// === impl Cluster: pods ===

impl Cluster {
    /// Merges `status` into the status of a pod, as a kubelet would write it.
    ///
    /// # Errors
    /// 404 if there is no such pod; 400 if the result is no status.
    pub fn set_pod_status(
        &mut self,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<Object, ApiError> {
        let pod = self.state.found(Kind::Pod, &Place::new(namespace, name))?;
        let mut new = Value::clone(&pod);
        patch::merge(&mut new["status"], status);
        validate::shape(Kind::Pod, &new)?;
        Ok(commit::change(&mut self.state, Kind::Pod, &pod, new))
    }

    /// Ends a pod badly, as an eviction by its kubelet does; it stays as an object.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn fail_pod(
        &mut self,
        namespace: &str,
        name: &str,
        reason: &str,
    ) -> Result<Object, ApiError> {
        let pod = self.state.found(Kind::Pod, &Place::new(namespace, name))?;
        let mut failed =
            kubelet::observe(&self.state, &pod, Containers::Stopped { exit_code: 137 });
        failed["status"]["reason"] = reason.into();
        Ok(commit::change(&mut self.state, Kind::Pod, &pod, failed))
    }

    /// Puts an object in the place of one of its name, whatever the API server would say of it: one of another version may have let it in.
    ///
    /// # Errors
    /// 404 if there is none.
    pub fn replace_unchecked(&mut self, object: Value) -> Result<Object, ApiError> {
        let kind = read_kind(&object)?;
        let old = self.state.found(kind, &Place::of(&object))?;
        Ok(commit::change(&mut self.state, kind, &old, object))
    }

    /// Adds a restart to the pod's first container.
    ///
    /// # Errors
    /// 404 if there is no such pod, 409 if no container of it has started.
    pub fn restart_pod(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.state.found(Kind::Pod, &Place::new(namespace, name))?;
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        let Some(restarts) = restarts else {
            return Err(ApiError::conflict(
                Kind::Pod,
                name,
                "no container has started",
            ));
        };
        let mut new = Value::clone(&pod);
        new["status"]["containerStatuses"][0]["restartCount"] = restarts.saturating_add(1).into();
        Ok(commit::change(&mut self.state, Kind::Pod, &pod, new))
    }

    /// Removes a pod without grace, finalizers and all.
    ///
    /// # Errors
    /// 404 if there is no such pod.
    pub fn remove_pod_now(&mut self, namespace: &str, name: &str) -> Result<Object, ApiError> {
        let pod = self.state.found(Kind::Pod, &Place::new(namespace, name))?;
        Ok(commit::remove(&mut self.state, Kind::Pod, &pod))
    }
}

// === impl Cluster: nodes ===

impl Cluster {
    /// Stops a node from answering; [`crate::NodeLoss`] says what follows.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn fail_node(&mut self, name: &str) -> Result<(), ApiError> {
        node::fail_node(&mut self.state, name)
    }

    /// Lets a node answer again: its pods run and become ready, those asked to go stop.
    ///
    /// # Errors
    /// 404 if there is no such node.
    pub fn recover_node(&mut self, name: &str) -> Result<(), ApiError> {
        node::recover_node(&mut self.state, name)
    }
}
