//! The backend of the console: `InspectionService` without gRPC, and data that the service does not have yet.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use axum::Router;
use decree::v1;
use http::{Extensions, HeaderMap};
use server_console::{
    Backend, Caller as ConsoleCaller, DecisionAttempt, KnownNodes, NODES_MAX, SessionUsage,
    StreamEnd,
};
use server_core::Timestamp;
use tonic::Status;

use crate::{
    access::Caller,
    args::Config,
    clock,
    inspection::Inspection,
    peer::ConnectionPeer,
    questions::ask_all,
    service::Decisions,
    shared::Shared,
    visible::{find_cluster, visible},
};

/// Adds the console to the routes of the admin port, unless the console is turned off.
pub(crate) fn add(router: Router, shared: &Arc<Shared>) -> Router {
    let Config { limits, tls, .. } = &shared.config;
    let config = server_console::ConsoleConfig {
        streams_max: limits.console_streams_max,
        insecure: tls.insecure,
        sessions_max: limits.sessions_max,
        memory_max: limits.memory_max,
    };
    let backend = Arc::new(Inspection(Arc::clone(shared)));
    server_console::add(router, backend, config)
}

fn caller(caller: &ConsoleCaller) -> Caller {
    Caller::of(&caller.0)
}

#[tonic::async_trait]
impl Backend for Inspection {
    async fn authorize(
        &self,
        method: &str,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<ConsoleCaller, Status> {
        let mut extensions = Extensions::new();
        extensions.insert(ConnectionPeer::of_admin(peer));
        let caller = self
            .0
            .access
            .authorize(method, headers, &extensions)
            .await?;
        self.0.check_draining()?;
        extensions.insert(caller);
        Ok(ConsoleCaller(extensions))
    }

    fn follow(&self, viewer: &ConsoleCaller) -> StreamEnd {
        let shared = Arc::clone(&self.0);
        let (open, end_signal) = shared.access.open_watch(&caller(viewer));
        Box::pin(async move {
            let _open = open;
            let why = tokio::select! {
                biased;
                () = shared.draining.cancelled() => shared.drain_refusal(),
                why = end_signal.wait() => why,
            };
            why.into()
        })
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn simulate(
        &self,
        viewer: &ConsoleCaller,
        request: v1::SimulateRequest,
    ) -> Result<v1::SimulateResponse, Status> {
        let decisions = Decisions(Arc::clone(&self.0));
        let until = decisions.until(&viewer.0);
        let answer = decisions.simulate_for(caller(viewer), request, until, |it| it);
        Ok(answer.await?)
    }

    async fn nodes(&self, viewer: &ConsoleCaller, cluster: &str) -> Result<KnownNodes, Status> {
        let caller = caller(viewer);
        let shards = find_cluster(&self.0, &caller, cluster)?;
        let answers = ask_all(&shards, &caller, |session, _| {
            let nodes = session.controller().inspect().nodes();
            let nodes = nodes.map(|(name, pods)| (Arc::clone(name), pods));
            // One more shows that the answer is cut.
            Some(nodes.take(NODES_MAX + 1).collect::<Vec<_>>())
        });
        let answers = answers.await;
        let mut pods = BTreeMap::<_, u32>::new();
        for (name, of_shard) in answers.given.into_iter().flat_map(|(_, nodes)| nodes) {
            *pods.entry(name).or_default() += of_shard;
        }
        let is_complete = answers.missing.is_empty();
        Ok(KnownNodes { pods, is_complete })
    }

    fn usage(&self, viewer: &ConsoleCaller) -> Vec<SessionUsage> {
        let config = self.0.session_config();
        let sessions = visible(&self.0, &caller(viewer), "");
        let usage = sessions.iter().map(|one| {
            let shown = &one.handle.shown;
            let mut summary = shown.summarize(&one.identity, &config);
            // A page shows the age of a stale view only, so that its data changes only then.
            let is_stale = shown.is_stale(config.heartbeat_interval);
            summary.age.take_if(|_| !is_stale);
            SessionUsage {
                summary,
                identity: self.0.access.identity_of(&one.identity.session_id),
                quarantined: shown.overview().stats.sizes.quarantined,
            }
        });
        usage.collect()
    }

    async fn attempt(
        &self,
        viewer: &ConsoleCaller,
        subject: &v1::GetReplicaSetRequest,
        attempt: DecisionAttempt,
    ) -> Result<String, Status> {
        let decisions = Decisions(Arc::clone(&self.0));
        let (caller, until) = (caller(viewer), decisions.until(&viewer.0));
        let answer = decisions.about(&caller, subject, until, move |around, _, go_on| {
            Ok(attempt(&around, go_on)?)
        });
        Ok(answer.await?)
    }
}
