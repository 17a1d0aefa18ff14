//! The Leases that show which agents act, and which agents run.

use agent_core::{
    api::ApiError,
    lease::{Command, Record},
};

use crate::{objects, reading::unreadable, requests, transport::Transport};

/// The Leases of a cluster, with a separate connection.
#[derive(Clone)]
pub struct Leases {
    transport: Transport,
}

// === impl Leases ===

impl Leases {
    pub(crate) const fn new(transport: Transport) -> Self {
        Self { transport }
    }

    pub(crate) const fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Reads, creates or replaces a Lease.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn send(
        &self,
        namespace: &str,
        name: &str,
        command: &Command,
    ) -> Result<Record, ApiError> {
        let request = requests::lease(namespace, name, command)?;
        let answer = self.transport.fetch(request).await?;
        objects::lease(&answer).map_err(unreadable)
    }

    /// Lists all Leases of a namespace, by name, from the newest state.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn list(&self, namespace: &str) -> Result<Vec<(String, Record)>, ApiError> {
        let request = requests::list_leases(namespace)?;
        let answer = self.transport.fetch(request).await?;
        objects::leases(&answer).map_err(unreadable)
    }

    /// Deletes a Lease, unless it has changed since this version.
    ///
    /// # Errors
    /// The error of the API server: 409 if the Lease has changed.
    pub async fn delete(
        &self,
        namespace: &str,
        name: &str,
        resource_version: &str,
    ) -> Result<(), ApiError> {
        let request = requests::delete_lease(namespace, name, resource_version)?;
        self.transport.fetch(request).await.map(drop)
    }
}
