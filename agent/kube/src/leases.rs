//! The Leases that show which agents act. Their requests have a separate connection.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

use crate::{cluster::KubeCluster, objects, reading::unreadable, requests};

impl KubeCluster {
    /// Reads, creates or replaces a Lease.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn lease(
        &self,
        namespace: &str,
        name: &str,
        command: &Command,
    ) -> Result<Record, ApiError> {
        let request = requests::lease(namespace, name, command)?;
        let answer = self.leases.fetch(request).await?;
        objects::lease(&answer).map_err(unreadable)
    }

    /// Lists all Leases of a namespace, by name, from the newest state.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn list_leases(&self, namespace: &str) -> Result<Vec<(String, Record)>, ApiError> {
        let request = requests::list_leases(namespace)?;
        let answer = self.leases.fetch(request).await?;
        objects::leases(&answer).map_err(unreadable)
    }
}
