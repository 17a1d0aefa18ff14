//! A real cluster as a [`Cluster`].

use agent_core::{
    api::{ApiError, Kind, Reply, Request},
    recorder::Event,
    watch::{List, WatchEvent},
};
use agent_kube::KubeCluster;
use decree::TraceContext;

use super::{Cluster, Events, Pages};

impl Events for agent_kube::Events {
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        Self::next(self).await
    }
}

impl Pages for agent_kube::Pages {
    async fn next(&mut self) -> Option<Result<List, ApiError>> {
        Self::next(self).await
    }
}

impl Cluster for KubeCluster {
    type Pages = agent_kube::Pages;
    type Events = agent_kube::Events;

    async fn uid(&self) -> Result<String, ApiError> {
        Self::uid(self).await
    }

    fn list(&self, kind: Kind) -> Self::Pages {
        Self::list(self, kind)
    }

    async fn newest_version(&self, kind: Kind) -> Result<String, ApiError> {
        Self::newest_version(self, kind).await
    }

    async fn watch(&self, kind: Kind, from: String) -> Result<Self::Events, ApiError> {
        Self::watch(self, kind, from).await
    }

    fn calls_max(&self) -> usize {
        Self::calls_max(self)
    }

    async fn record(&self, event: Event) -> Result<(), ApiError> {
        Self::record(self, event).await
    }

    fn call(
        &self,
        request: Request,
        trace: Option<TraceContext>,
    ) -> impl Future<Output = Result<Reply, ApiError>> + Send + use<> {
        let cluster = self.clone();
        async move { Self::call(&cluster, request, trace).await }
    }
}
