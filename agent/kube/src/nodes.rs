//! The nodes: a list in pages, watches from its version, and the same again after an error.
//!
//! Nodes are read as JSON: they are few, and only agents with preferences that depend on nodes read them.

use std::{
    convert::Infallible,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use agent_core::{
    api::{ApiError, Kind},
    nodes::{NodeEvent, NodeFields, NodeNews},
    pace::Backoff,
};
use serde::Deserialize;
use tokio::time::sleep;

use crate::{
    codec::{self, EventJson, ListMeta},
    objects::NodeMessage,
    reading::{Events, decoded},
    requests,
    transport::Transport,
};

/// The waits after a failure or the end of a watch.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
    items: Vec<NodeMessage>,
}

/// The nodes of a cluster, and who is told of them.
pub(crate) struct Nodes<T> {
    pub(crate) transport: Transport,
    pub(crate) fields: NodeFields,
    pub(crate) tell: T,
    pub(crate) backoff: Backoff,
}

pub(crate) fn backoff() -> Backoff {
    Backoff::new(WAIT_MIN, WAIT_MAX, RandomState::new().hash_one(()))
}

impl<T: FnMut(NodeNews) -> F, F: Future<Output = ()>> Nodes<T> {
    /// Tells all news of the nodes, and each failure.
    pub(crate) async fn follow(mut self) -> Infallible {
        loop {
            let listed = self.list().await.map_err(|error| ("list", error));
            let (verb, error) = match listed {
                Ok(version) => ("watch", self.watch(version).await),
                Err(failed) => failed,
            };
            let wait = self.backoff.next_wait().max(error.retry_after());
            (self.tell)(Err((verb, error))).await;
            sleep(wait).await;
        }
    }

    /// Lists all nodes. Returns the version of the list.
    async fn list(&mut self) -> Result<String, ApiError> {
        let (mut token, mut nodes) = (String::new(), Vec::new());
        loop {
            let path = requests::nodes_page(&token);
            let page = self.transport.fetch(requests::read(&path, codec::JSON)?);
            let page = page.await?;
            let read = decoded(&page).map_err(|error| codec::status(&page).unwrap_or(error));
            let read: Page = read?;
            nodes.extend(read.items.into_iter().map(|it| it.with(&self.fields)));
            token = read.metadata.r#continue;
            if token.is_empty() {
                (self.tell)(Ok(vec![NodeEvent::Listed(nodes)])).await;
                return Ok(read.metadata.resource_version);
            }
        }
    }

    /// Watches from a version, and says so by no events. Returns the error that needs a new list.
    async fn watch(&mut self, mut version: String) -> ApiError {
        loop {
            match self.read(&mut version).await {
                Ok(()) => sleep(self.backoff.next_wait()).await,
                Err(error) => return error,
            }
        }
    }

    /// Reads one watch to its end.
    async fn read(&mut self, version: &mut String) -> Result<(), ApiError> {
        let path = requests::watch_nodes(version);
        let body = self.transport.open(requests::read(&path, codec::JSON)?);
        let mut events = Events::new(body.await?, Kind::Pod);
        (self.tell)(Ok(Vec::new())).await;
        while let Some(line) = events.next_line().await {
            let EventJson { r#type, object } = decoded(&line)?;
            let object = line.slice_ref(object.get().as_bytes());
            if r#type == "ERROR" {
                return Err(codec::refusal(None, &object));
            }
            let node: NodeMessage = decoded(&object)?;
            node.resource_version().clone_into(version);
            let node = node.with(&self.fields);
            let event = match r#type.as_str() {
                "ADDED" | "MODIFIED" => NodeEvent::Applied(node),
                "DELETED" => NodeEvent::Deleted(node.name),
                _ => continue,
            };
            self.backoff.reset();
            (self.tell)(Ok(vec![event])).await;
        }
        Ok(())
    }
}
