//! The port to a cluster: what the agent needs of one, and nothing else.

use std::future::Future;

use decree::TraceContext;

use crate::{
    api::{ApiError, Kind, Reply, Request},
    recorder::Event,
    watch::{List, WatchEvent},
};

/// A watch that is open. A reader that is slow slows it, and loses nothing.
pub trait EventStream: Send + 'static {
    /// Returns the next events that have come; `None` once the watch has ended.
    fn next(&mut self) -> impl Future<Output = Option<Vec<WatchEvent>>> + Send;
}

/// A list that is being read.
pub trait PageStream: Send + 'static {
    /// Returns the next page; `None` after the last, or after an error.
    fn next(&mut self) -> impl Future<Output = Option<Result<List, ApiError>>> + Send;
}

/// A cluster. Clones are handles to the same one.
///
/// Implementations must not retry: a repeated create could create a second pod. [`Request`] is the closed set of calls.
pub trait Cluster: Clone + Send + Sync + 'static {
    /// How it is listed.
    type Pages: PageStream;
    /// How it is watched.
    type Events: EventStream;

    /// Reads the uid of the namespace kube-system, by which the cluster is known.
    fn uid(&self) -> impl Future<Output = Result<String, ApiError>> + Send;

    /// Lists all objects of a kind from the newest state.
    fn list(&self, kind: Kind) -> Self::Pages;

    /// Reads the newest version of a kind: that of a list from the newest state, of which no more than one object is read.
    fn newest_version(&self, kind: Kind) -> impl Future<Output = Result<String, ApiError>> + Send;

    /// Watches a kind from a version on.
    fn watch(
        &self,
        kind: Kind,
        from: String,
    ) -> impl Future<Output = Result<Self::Events, ApiError>> + Send;

    /// Returns how many calls in flight the cluster bears at the moment. More are made, and wait.
    fn calls_max(&self) -> usize {
        usize::MAX
    }

    /// Writes an event, where the cluster keeps any.
    fn record(&self, event: Event) -> impl Future<Output = Result<(), ApiError>> + Send {
        let _ = event;
        std::future::ready(Ok(()))
    }

    /// Makes one call. `trace` is its trace context, for a cluster that records spans itself.
    ///
    /// A cluster in this process may act before the answer is awaited: so its calls take effect in the order in which they are made.
    fn call(
        &self,
        request: Request,
        trace: Option<TraceContext>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<Self>;
}
