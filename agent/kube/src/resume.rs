//! How people resume what the budget of an agent holds: by an annotation, with credentials of their own.

use agent_core::api::{ApiError, Kind};

use crate::{cluster::KubeCluster, codec, reading::unreadable, requests};

impl KubeCluster {
    /// Returns the namespace and the name of some ReplicaSet that is read here; `None` where there is none.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn some_replica_set(&self) -> Result<Option<(String, String)>, ApiError> {
        let path = self.scope.page(Kind::ReplicaSet, 1, None)?;
        let page = self.transport.fetch(requests::get(&path)?).await?;
        let page = codec::whole(&page).map_err(unreadable)?;
        let text = |path| page.pointer(path)?.as_str().map(str::to_owned);
        let namespace = text("/items/0/metadata/namespace");
        Ok(namespace.zip(text("/items/0/metadata/name")))
    }

    /// Sets the [annotation](agent_core::resume::RESUME_ANNOTATION) of a ReplicaSet.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn resume(&self, namespace: &str, name: &str, value: &str) -> Result<(), ApiError> {
        let request = requests::resume(&self.scope.resource, (namespace, name), value)?;
        self.transport.fetch(request).await.map(drop)
    }
}
