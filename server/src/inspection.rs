//! `InspectionService`: the state of the sessions. Each answer comes from a session's own task.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use decree::v1::{self, inspection_service_server::InspectionService};
use server_console::DecisionStream;
use server_core::Timestamp;
use server_session::{Registered, Session};
use tonic::{Request, Response, Status};

use crate::{
    access::Caller,
    error::Refusal,
    page::{self, Page},
    service::Decisions,
    session::SessionHandle,
    shared::Shared,
    visible::{find, visible, visible_of},
};

/// How long one session may take to answer when all sessions are asked.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) struct Inspection(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl InspectionService for Inspection {
    type WatchDecisionsStream = DecisionStream;

    async fn list_replica_sets(
        &self,
        request: Request<v1::ListReplicaSetsRequest>,
    ) -> Result<Response<v1::ListReplicaSetsResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let v1::ListReplicaSetsRequest {
            cluster,
            namespace,
            page_size,
            page_token,
        } = request;
        let limit = page::size(page_size)?;
        let start = Page::parse(&page_token)?;
        let sessions = visible_of(&self.0, &Caller::of(&extensions), &cluster)?;
        let mut found = Vec::new();
        for shards in
            sessions.chunk_by(|left, right| left.identity.cluster_uid == right.identity.cluster_uid)
        {
            let Some(after) = start.after_in(&shards[0].identity) else {
                continue;
            };
            for one in shards {
                let (after, namespace) = (after.clone(), namespace.clone());
                // One more than requested tells whether there is another page.
                let summaries = ask_if_there(one, move |session, now| {
                    session.list(now, (&after.0, &after.1), &namespace, limit + 1)
                });
                let summaries = summaries.await.unwrap_or_default().into_iter();
                found.extend(summaries.map(|summary| (Page::of(&one.identity, &summary), summary)));
            }
            if found.len() > limit {
                break;
            }
        }
        let max = self.0.config.limits.frame_bytes_max;
        let (replica_sets, next_page_token) = page::cut(found, limit, max);
        Ok(Response::new(v1::ListReplicaSetsResponse {
            replica_sets,
            next_page_token,
        }))
    }

    /// One ReplicaSet, with its last decisions.
    async fn get_replica_set(
        &self,
        request: Request<v1::GetReplicaSetRequest>,
    ) -> Result<Response<v1::GetReplicaSetResponse>, Status> {
        let (_, extensions, subject) = request.into_parts();
        for one in find(&self.0, &Caller::of(&extensions), &subject)? {
            let v1::GetReplicaSetRequest {
                namespace, name, ..
            } = subject.clone();
            let described = one
                .handle
                .ask(move |session, now| session.describe(now, &namespace, &name));
            if let Some(found) = described.await? {
                return Ok(Response::new(found));
            }
        }
        Err(Refusal::unknown(subject).into())
    }

    async fn watch_decisions(
        &self,
        request: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<DecisionStream>, Status> {
        self.0.check_draining()?;
        let (_, extensions, request) = request.into_parts();
        let caller = Caller::of(&extensions);
        let open = self.0.access.open_watch(&caller);
        let watchers = Arc::clone(&self.0.watchers);
        let watch = watchers.watch(request, caller, open, self.0.drain_refusal())?;
        Ok(Response::new(Box::pin(watch)))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let mut sessions = Vec::new();
        for one in visible(&self.0, &Caller::of(request.extensions()), "") {
            sessions.extend(ask_if_there(&one, |session, _| session.summarize()).await);
        }
        Ok(Response::new(v1::ListSessionsResponse {
            server_version: build_info::text().to_owned(),
            sessions,
        }))
    }

    /// The actions in which other controllers differed from this server.
    async fn list_differences(
        &self,
        request: Request<v1::ListDifferencesRequest>,
    ) -> Result<Response<v1::ListDifferencesResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let v1::ListDifferencesRequest {
            cluster,
            namespace,
            name,
        } = request;
        let sessions = visible_of(&self.0, &Caller::of(&extensions), &cluster)?;
        if sessions.is_empty() && !cluster.is_empty() {
            return Err(Refusal::ClusterUnknown(cluster).into());
        }
        let mut answer = v1::ListDifferencesResponse::default();
        for one in sessions {
            let (namespace, name) = (namespace.clone(), name.clone());
            let found = ask_if_there(&one, move |session, _| {
                session.differences(&namespace, &name)
            });
            if let Some(found) = found.await.flatten() {
                add(&mut answer, found);
            }
        }
        answer.differences.sort_by_key(|difference| {
            let time = difference.time.unwrap_or_default();
            Reverse((time.seconds, time.nanos))
        });
        Ok(Response::new(answer))
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

/// Asks one of many sessions. `None` from a session that ends or does not answer, so that the other answers are not delayed.
pub(crate) async fn ask_if_there<T: Send + 'static>(
    session: &Registered<SessionHandle>,
    query: impl FnOnce(&Session, Timestamp) -> T + Send + 'static,
) -> Option<T> {
    session.handle.ask_within(PATIENCE, query).await.ok()
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
                known.not_compared += agreement.not_compared;
            }
            None => answer.agreements.push(agreement),
        }
    }
}
