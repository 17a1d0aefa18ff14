//! The nodes: a list in pages, then a watch from its version, and again after each error.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use agent_core::{
    api::{ApiError, Kind},
    cluster::{NodeFailure, NodeStream},
    nodes::{NodeEvent, NodeFields},
    pace::Backoff,
};
use tokio::time::sleep;

use crate::{
    codec::{self, EventDocument},
    reading::{Events, unreadable},
    requests,
    transport::Transport,
};

/// The waits after a failure or the end of a watch.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The nodes of a cluster.
#[derive(Debug)]
pub struct Nodes {
    transport: Transport,
    fields: NodeFields,
    step: Step,
    /// The wait before the next step.
    wait: Option<Duration>,
    pub(crate) backoff: Backoff,
}

#[derive(Debug)]
enum Step {
    /// List the page of this token; without one, the first.
    List(Option<String>),
    /// Open a watch from this version.
    Watch(String),
    /// Read the watch, which has reached this version.
    Read(String, Box<Events>),
}

impl Nodes {
    pub(crate) fn new(transport: Transport, fields: NodeFields) -> Self {
        Self {
            transport,
            fields,
            step: Step::List(None),
            wait: None,
            backoff: Backoff::new(WAIT_MIN, WAIT_MAX, RandomState::new().hash_one(())),
        }
    }

    async fn list(&mut self, token: Option<String>) -> Result<Vec<NodeEvent>, ApiError> {
        let path = requests::nodes_page(token.as_deref());
        let page = self.transport.fetch(requests::read(&path, codec::OBJECTS)?);
        let page = page.await?;
        let read = codec::nodes(&page);
        let (nodes, next, version) =
            read.map_err(|error| codec::status(&page).unwrap_or_else(|| unreadable(error)))?;
        let mut events = Vec::with_capacity(nodes.len() + 2);
        events.extend(token.is_none().then_some(NodeEvent::Begin));
        let nodes = nodes.into_iter().map(|it| it.with(&self.fields));
        events.extend(nodes.map(NodeEvent::Applied));
        events.extend(next.is_none().then_some(NodeEvent::Complete));
        self.step = next.map_or(Step::Watch(version), |token| Step::List(Some(token)));
        Ok(events)
    }

    /// Opens a watch, and says so by no events.
    async fn watch(&mut self, from: String) -> Result<Vec<NodeEvent>, ApiError> {
        self.step = Step::Watch(from.clone());
        let path = requests::watch_nodes(&from);
        let body = self.transport.open(requests::read(&path, codec::EVENTS)?);
        let body = body.await.inspect_err(|error| {
            if error.is_gone() {
                self.step = Step::List(None);
            }
        })?;
        self.step = Step::Read(from, Box::new(Events::new(body, Kind::Pod)));
        Ok(Vec::new())
    }

    async fn read(
        &mut self,
        mut from: String,
        mut events: Box<Events>,
    ) -> Result<Vec<NodeEvent>, ApiError> {
        let Some(chunk) = events.next_documents().await else {
            self.wait = Some(self.backoff.next_wait());
            self.step = Step::Watch(from);
            return Ok(Vec::new());
        };
        let mut news = Vec::with_capacity(chunk.len());
        for event in chunk {
            news.extend(self.event(event, &mut from)?);
        }
        self.backoff.reset();
        self.step = Step::Read(from, events);
        Ok(news)
    }

    /// Reads an event, and the version that the watch has reached. The error of an event begins again with a list.
    fn event(
        &self,
        event: EventDocument,
        version: &mut String,
    ) -> Result<Option<NodeEvent>, ApiError> {
        let (verb, document) = event.map_err(unreadable)?;
        if verb == "ERROR" {
            return Err(codec::refusal(None, &document));
        }
        let node = codec::node(&document).map_err(unreadable)?;
        node.resource_version().clone_into(version);
        let node = node.with(&self.fields);
        Ok(match verb.as_str() {
            "ADDED" | "MODIFIED" => Some(NodeEvent::Applied(node)),
            "DELETED" => Some(NodeEvent::Deleted(node.name)),
            _ => None,
        })
    }
}

impl NodeStream for Nodes {
    async fn next(&mut self) -> Result<Vec<NodeEvent>, NodeFailure> {
        if let Some(wait) = self.wait.take() {
            sleep(wait).await;
        }
        // An error lists again, unless its step says otherwise.
        let step = std::mem::replace(&mut self.step, Step::List(None));
        let (verb, news) = match step {
            Step::List(token) => ("list", self.list(token).await),
            Step::Watch(from) => ("watch", self.watch(from).await),
            Step::Read(from, events) => ("watch", self.read(from, events).await),
        };
        news.map_err(|error| {
            self.wait = Some(self.backoff.next_wait().max(error.retry_after()));
            NodeFailure { verb, error }
        })
    }
}
