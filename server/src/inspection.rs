//! `InspectionService`: the state of the sessions. Each answer comes from a session's own task.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use decree::v1::{self, inspection_service_server::InspectionService};
use server_core::Timestamp;
use server_session::{Registered, Session};
use tokio::time::timeout;
use tonic::{Request, Response, Status};

use crate::{
    access::Caller,
    capacity::EndSignal,
    error::Refusal,
    page::{self, Page},
    service::Decisions,
    session::SessionHandle,
    shared::Shared,
    visible::{find, visible, visible_of},
    watchers::{Viewer, Watch},
};

/// How long one session may take to answer when all sessions are asked.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Inspection(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl InspectionService for Inspection {
    type WatchDecisionsStream = Watch;

    async fn list_replica_sets(
        &self,
        request: Request<v1::ListReplicaSetsRequest>,
    ) -> Result<Response<v1::ListReplicaSetsResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let page = self.list(Caller::of(&extensions), request).await?;
        Ok(Response::new(page))
    }

    async fn get_replica_set(
        &self,
        request: Request<v1::GetReplicaSetRequest>,
    ) -> Result<Response<v1::GetReplicaSetResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let found = self.describe(Caller::of(&extensions), request).await?;
        Ok(Response::new(found))
    }

    async fn watch_decisions(
        &self,
        request: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<Watch>, Status> {
        let (_, extensions, request) = request.into_parts();
        let watch = self.watch(Caller::of(&extensions), request)?;
        Ok(Response::new(watch))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let caller = Caller::of(request.extensions());
        Ok(Response::new(v1::ListSessionsResponse {
            server_version: build_info::text().to_owned(),
            sessions: self.sessions(caller).await,
        }))
    }

    async fn list_differences(
        &self,
        request: Request<v1::ListDifferencesRequest>,
    ) -> Result<Response<v1::ListDifferencesResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let found = self.differences(Caller::of(&extensions), request);
        Ok(Response::new(found.await?))
    }

    async fn simulate_cluster(
        &self,
        request: Request<v1::SimulateClusterRequest>,
    ) -> Result<Response<v1::SimulateClusterResponse>, Status> {
        self.0.check_draining()?;
        let (_, extensions, request) = request.into_parts();
        let decisions = Decisions(Arc::clone(&self.0));
        let until = decisions.until(&extensions);
        let caller = Caller::of(&extensions);
        let found = decisions.simulate_change(&caller, request, until);
        Ok(Response::new(found.await?))
    }
}

// === impl Inspection ===

impl Inspection {
    pub(crate) async fn list(
        &self,
        caller: Caller,
        request: v1::ListReplicaSetsRequest,
    ) -> Result<v1::ListReplicaSetsResponse, Refusal> {
        let v1::ListReplicaSetsRequest {
            cluster,
            namespace,
            page_size,
            page_token,
        } = request;
        let limit = page::size(page_size)?;
        let start = Page::parse(&page_token)?;
        let sessions = visible_of(&self.0, &caller, &cluster)?;
        let mut found: Vec<(Page, v1::ReplicaSetSummary)> = Vec::new();
        for shards in
            sessions.chunk_by(|left, right| left.identity.cluster_uid == right.identity.cluster_uid)
        {
            let Some(after) = start.after_in(&shards[0].identity) else {
                continue;
            };
            let mut of_cluster = Vec::new();
            for one in shards {
                let (after, namespace) = (after.clone(), namespace.clone());
                // One more than requested tells whether there is another page.
                let summaries = ask_if_there(one, move |session, now| {
                    session.list(now, (&after.0, &after.1), &namespace, limit + 1)
                });
                let summaries = summaries.await.unwrap_or_default().into_iter();
                of_cluster
                    .extend(summaries.map(|summary| (Page::of(&one.identity, &summary), summary)));
            }
            of_cluster.sort_by(|(left, _), (right, _)| left.cmp(right));
            found.append(&mut of_cluster);
            if found.len() > limit {
                break;
            }
        }
        let max = self.0.config.limits.frame_bytes_max;
        let (replica_sets, next_page_token) = page::cut(found, limit, max);
        Ok(v1::ListReplicaSetsResponse {
            replica_sets,
            next_page_token,
        })
    }

    /// One ReplicaSet, with its last decisions.
    pub(crate) async fn describe(
        &self,
        caller: Caller,
        request: v1::GetReplicaSetRequest,
    ) -> Result<v1::GetReplicaSetResponse, Refusal> {
        let v1::GetReplicaSetRequest {
            cluster,
            namespace,
            name,
        } = request;
        for one in find(&self.0, &caller, &cluster, &namespace, &name)? {
            let (namespace, name) = (namespace.clone(), name.clone());
            let described = one
                .handle
                .ask(move |session, now| session.describe(now, &namespace, &name));
            if let Some(found) = described.await? {
                return Ok(found);
            }
        }
        Err(Refusal::ReplicaSetUnknown { namespace, name })
    }

    pub(crate) fn watch(
        &self,
        caller: Caller,
        request: v1::WatchDecisionsRequest,
    ) -> Result<Watch, Refusal> {
        self.0.check_draining()?;
        let end_signal = EndSignal::default();
        let open = self.0.access.open_watch(&caller, &end_signal);
        let viewer = Viewer {
            caller,
            end_signal,
            open,
        };
        let watchers = Arc::clone(&self.0.watchers);
        watchers.watch(request, viewer, self.0.drain_refusal())
    }

    /// The actions in which other controllers differed from this server.
    pub(crate) async fn differences(
        &self,
        caller: Caller,
        request: v1::ListDifferencesRequest,
    ) -> Result<v1::ListDifferencesResponse, Refusal> {
        let v1::ListDifferencesRequest {
            cluster,
            namespace,
            name,
        } = request;
        let sessions = visible_of(&self.0, &caller, &cluster)?;
        if sessions.is_empty() && !cluster.is_empty() {
            return Err(Refusal::ClusterUnknown(cluster));
        }
        let mut answer = v1::ListDifferencesResponse::default();
        for one in sessions {
            let (namespace, name) = (namespace.clone(), name.clone());
            let found = ask_if_there(&one, move |session, _| {
                session.differences(&namespace, &name)
            });
            let found = found.await.flatten();
            if let Some(found) = found {
                add(&mut answer, found);
            }
        }
        let time = |difference: &v1::Difference| {
            let time = difference.time.unwrap_or_default();
            (time.seconds, time.nanos)
        };
        answer
            .differences
            .sort_by_key(|difference| Reverse(time(difference)));
        Ok(answer)
    }

    pub(crate) async fn sessions(&self, caller: Caller) -> Vec<v1::SessionSummary> {
        let mut sessions = Vec::new();
        for one in visible(&self.0, &caller) {
            sessions.extend(ask_if_there(&one, |session, _| session.summarize()).await);
        }
        sessions
    }
}

/// Asks one of many sessions. `None` from a session that ends or does not answer, so that the other answers are not delayed.
pub(crate) async fn ask_if_there<T: Send + 'static>(
    session: &Registered<SessionHandle>,
    query: impl FnOnce(&Session, Timestamp) -> T + Send + 'static,
) -> Option<T> {
    let answer = timeout(PATIENCE, session.handle.ask(query));
    answer.await.ok()?.ok()
}

fn add(answer: &mut v1::ListDifferencesResponse, found: v1::ListDifferencesResponse) {
    let v1::ListDifferencesResponse {
        mut differences,
        shadows,
        compared,
        agreements,
        deleted_by_others,
        replica_sets,
        since,
    } = found;
    answer.differences.append(&mut differences);
    answer.shadows += shadows;
    answer.compared += compared;
    answer.deleted_by_others += deleted_by_others;
    answer.replica_sets += replica_sets;
    let seconds = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    answer.since = answer.since.into_iter().chain(since).min_by_key(seconds);
    for agreement in agreements {
        let mut known = answer.agreements.iter_mut();
        match known.find(|known| known.subject == agreement.subject) {
            Some(known) => {
                known.compared += agreement.compared;
                known.explained += agreement.explained;
                known.unexplained += agreement.unexplained;
            }
            None => answer.agreements.push(agreement),
        }
    }
}
