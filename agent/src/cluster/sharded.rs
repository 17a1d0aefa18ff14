//! One shard of a real cluster as a [`Cluster`].

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    recorder::Event,
    watch::{List, WatchEvent},
};
use agent_kube::{ShardedCluster, SharedEvents, SharedPages};
use decree::TraceContext;

use super::{Cluster, Events, Pages};

impl Events for SharedEvents {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        Self::next(self).await
    }
}

impl Pages for SharedPages {
    async fn next(&mut self) -> Option<Result<List, ApiError>> {
        Self::next(self).await
    }
}

impl Cluster for ShardedCluster {
    type Pages = SharedPages;
    type Events = SharedEvents;

    async fn uid(&self) -> Result<String, ApiError> {
        self.whole().uid().await
    }

    fn list(&self, kind: Kind) -> Self::Pages {
        Self::list(self, kind)
    }

    async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        Self::newest_version(self, kind).await
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Self::Events, ApiError> {
        Self::watch(self, kind, &from).await
    }

    fn calls_max(&self) -> usize {
        self.whole().calls_max()
    }

    async fn record(&self, event: Event) -> Result<(), ApiError> {
        self.whole().record(event).await
    }

    fn call(
        &self,
        request: Request,
        trace: Option<TraceContext>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        let cluster = self.whole().clone();
        async move { cluster.call(request, trace).await }
    }
}
