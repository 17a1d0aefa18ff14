//! The port to a cluster: the requests that the agent needs, and nothing else.

use std::{convert::Infallible, future::Future};

use decree_api::v1;

use crate::{
    api::{ApiError, Kind, Reply, Request},
    asking::PodSource,
    nodes::{NodeFields, NodeNews},
    recorder::Event,
    watch::{List, WatchEvent},
};

/// An open watch. A slow reader slows the watch, and loses nothing.
pub trait EventStream: Send + 'static {
    /// Returns the next events; `None` once the watch has ended.
    fn next(&mut self) -> impl Future<Output = Option<Vec<WatchEvent>>> + Send;
}

/// A list in progress.
pub trait PageStream: Send + 'static {
    /// Returns the next page; `None` after the last, or after an error.
    fn next(&mut self) -> impl Future<Output = Option<Result<List, ApiError>>> + Send;
}

/// A cluster. Clones are handles to the same one.
///
/// Implementations must not retry: a repeated create could create a second pod. [`Request`] is the closed set of calls.
pub trait Cluster: Clone + Send + Sync + 'static {
    /// The pages of a list.
    type Pages: PageStream;
    /// The events of a watch.
    type Events: EventStream;

    /// Reads the UID of the namespace kube-system, which identifies the cluster.
    fn uid(&self) -> impl Future<Output = Result<String, ApiError>> + Send;

    /// Lists all objects of a kind from the newest state.
    fn list(&self, kind: Kind) -> Self::Pages;

    /// Reads the newest version of a kind: the version of a list from the newest state, limited to one object. Ends in
    /// bounded time, because the agent asks again only after the answer.
    fn newest_version(&self, kind: Kind) -> impl Future<Output = Result<String, ApiError>> + Send;

    /// Watches a kind from a version.
    fn watch(
        &self,
        kind: Kind,
        from: String,
    ) -> impl Future<Output = Result<Self::Events, ApiError>> + Send;

    /// Reads and watches all nodes from the newest state. Tells all news and each failure, without end; news of no event says that the nodes
    /// are being watched.
    fn follow_nodes<F: Future<Output = ()> + Send>(
        self,
        fields: NodeFields,
        tell: impl FnMut(NodeNews) -> F + Send,
    ) -> impl Future<Output = Infallible> + Send;

    /// Returns how many calls in flight the cluster can take now. The agent begins no more.
    fn calls_max(&self) -> usize {
        usize::MAX
    }

    /// Writes an event, if the cluster keeps events.
    fn record(&self, event: Event) -> impl Future<Output = Result<(), ApiError>> + Send {
        let _ = event;
        std::future::ready(Ok(()))
    }

    /// Asks a pod for its deletion cost, once. Takes the address of the pod from the cluster itself.
    ///
    /// The error says in a few words why there is no cost.
    fn cost(
        &self,
        pod: v1::ObjectRef,
        source: PodSource,
    ) -> impl Future<Output = Result<i32, String>> + Send + use<Self> {
        let _ = (pod, source);
        std::future::ready(Err("the cluster knows no costs".to_owned()))
    }

    /// Makes one call.
    ///
    /// A cluster in this process may act before the answer is awaited: so its calls take effect in the order in which they are made.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<Self>;
}
