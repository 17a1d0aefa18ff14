//! `InspectionService`: the state of the sessions.

use std::sync::Arc;

use decree_api::v1::{self, inspection_service_server::InspectionService};
use decree_core::Timestamp;
use server_session::Session;
use tonic::{Request, Response, Status};

use crate::{
    access::Caller,
    cluster_change,
    error::Refusal,
    page::{self, Page},
    questions::{ask_all, ask_first, stale_view, stale_views},
    registry::LiveSession,
    shared::Shared,
    visible::{find, of_shard, visible, visible_of},
    watchers::Watch,
};

/// The number of ReplicaSets in one step of a list.
const LISTED_IN_A_STEP: usize = 16;

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
        let limit = page::size(request.page_size)?;
        let start = Page::parse(&request.page_token)?;
        let (caller, namespace) = (Caller::of(&extensions), request.namespace);
        let sessions = visible_of(&self.0, &caller, &request.cluster)?;
        let sessions = of_shard(sessions, &request.shard);
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        let is_done = |one: &LiveSession| start.after_in(&one.identity).is_none();
        let mut rest = &sessions[sessions.partition_point(is_done)..];
        while found.len() <= limit && !rest.is_empty() {
            let group;
            (group, rest) = first_clusters(rest, limit, &namespace);
            // One more than requested tells whether there is another page.
            let step = listing(&start, &namespace, limit + 1);
            let answers = ask_all(group, &caller, step).await;
            missing.extend(answers.missing);
            for (one, summaries) in answers.given {
                let pages = summaries.into_iter();
                found.extend(pages.map(|summary| {
                    let object = summary.replica_set.as_ref();
                    (Page::of(&one.identity, object), summary)
                }));
            }
        }
        let max = self.0.config.limits.frame_bytes_max;
        let (replica_sets, next_page_token) = page::cut(found, limit, max);
        Ok(Response::new(v1::ListReplicaSetsResponse {
            replica_sets,
            next_page_token,
            stale_views: stale_views(&self.0, &sessions, &missing),
        }))
    }

    /// One ReplicaSet, with its last decisions.
    async fn get_replica_set(
        &self,
        request: Request<v1::GetReplicaSetRequest>,
    ) -> Result<Response<v1::GetReplicaSetResponse>, Status> {
        let (_, extensions, subject) = request.into_parts();
        let caller = Caller::of(&extensions);
        let sessions = find(&self.0, &caller, &subject)?;
        let (namespace, name) = (subject.namespace.clone(), subject.name.clone());
        let described = ask_first(sessions, &caller, move |session, now| {
            Some(session.describe(now, &namespace, &name))
        });
        let Some((session, mut found)) = described.await? else {
            return Err(Refusal::unknown(subject).into());
        };
        found.stale_view = stale_view(&self.0, &session, false);
        Ok(Response::new(found))
    }

    async fn watch_decisions(
        &self,
        request: Request<v1::WatchDecisionsRequest>,
    ) -> Result<Response<Watch>, Status> {
        self.0.check_draining()?;
        let (_, extensions, request) = request.into_parts();
        let caller = Caller::of(&extensions);
        let open = self.0.access.open_watch(&caller);
        let watchers = Arc::clone(&self.0.watchers);
        let watch = watchers.watch(request, caller, open, Shared::drain_refusal())?;
        Ok(Response::new(watch))
    }

    async fn list_sessions(
        &self,
        request: Request<v1::ListSessionsRequest>,
    ) -> Result<Response<v1::ListSessionsResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let limit = page::size(request.page_size)?;
        let start = Page::parse(&request.page_token)?;
        let all = visible(&self.0, &Caller::of(&extensions), "");
        let config = self.0.session_config();
        let pages = all.iter().map(|one| (Page::of_session(&one.identity), one));
        let rest = pages.filter(|(page, _)| *page > start);
        let found = rest.map(|(page, one)| {
            let summary = one.handle.shown.summarize(&one.identity, &config);
            (page, summary)
        });
        let max = self.0.config.limits.frame_bytes_max;
        let (sessions, next_page_token) = page::cut(found.collect(), limit, max);
        Ok(Response::new(v1::ListSessionsResponse {
            server_version: service::build_info::text().to_owned(),
            sessions,
            next_page_token,
            stale_views: stale_views(&self.0, &all, &[]),
        }))
    }

    /// The actions in which other controllers differed from this server.
    async fn list_differences(
        &self,
        request: Request<v1::ListDifferencesRequest>,
    ) -> Result<Response<v1::ListDifferencesResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let limit = page::size(request.page_size)?;
        let start = Page::parse(&request.page_token)?;
        let caller = Caller::of(&extensions);
        let sessions = visible_of(&self.0, &caller, &request.cluster)?;
        let sessions = of_shard(sessions, &request.shard);
        if sessions.is_empty() && !request.cluster.is_empty() {
            return Err(Refusal::ClusterUnknown(request.cluster).into());
        }
        let answers = ask_all(&sessions, &caller, move |session, _| {
            Some(session.differences(&request.namespace, &request.name))
        });
        let answers = answers.await;
        let mut answer = v1::ListDifferencesResponse::default();
        let mut found = Vec::new();
        for (_, mut one) in answers
            .given
            .into_iter()
            .filter_map(|(at, one)| Some((at, one?)))
        {
            found.extend(numbered(std::mem::take(&mut one.differences)));
            add(&mut answer, one);
        }
        found.retain(|(page, _)| *page > start);
        let max = self.0.config.limits.frame_bytes_max;
        (answer.differences, answer.next_page_token) = page::cut(found, limit, max);
        answer.stale_views = stale_views(&self.0, &sessions, &answers.missing);
        Ok(Response::new(answer))
    }

    async fn simulate_cluster(
        &self,
        request: Request<v1::SimulateClusterRequest>,
    ) -> Result<Response<v1::SimulateClusterResponse>, Status> {
        self.0.check_draining()?;
        let (_, extensions, request) = request.into_parts();
        let caller = Caller::of(&extensions);
        let found = cluster_change::simulate(&self.0, &caller, request).await?;
        Ok(Response::new(found))
    }
}

/// Splits off the sessions of the first clusters that together have more than `limit` ReplicaSets; of all clusters for one namespace, of
/// which each may have few.
fn first_clusters<'a>(
    sessions: &'a [LiveSession],
    limit: usize,
    namespace: &str,
) -> (&'a [LiveSession], &'a [LiveSession]) {
    let (mut known, mut taken) = (0, 0);
    for shards in
        sessions.chunk_by(|left, right| left.identity.cluster_uid == right.identity.cluster_uid)
    {
        if known > limit && namespace.is_empty() {
            break;
        }
        let sizes = shards.iter().map(|one| one.handle.shown.stats().sizes);
        known += sizes.map(|sizes| sizes.replica_sets).sum::<usize>();
        taken += shards.len();
    }
    sessions.split_at(taken)
}

/// Lists up to `limit` ReplicaSets of a session after the beginning of a page.
fn listing(
    start: &Page,
    namespace: &str,
    limit: usize,
) -> impl FnMut(&Session, Timestamp) -> Option<Vec<v1::ReplicaSetSummary>> + Clone + Send + 'static
{
    let (start, namespace) = (start.clone(), namespace.to_owned());
    let (mut after, mut found) = (None, Vec::new());
    move |session, now| {
        let begin = || start.after_in(session.identity()).unwrap_or_default();
        let last: &mut (String, String) = after.get_or_insert_with(begin);
        let part = LISTED_IN_A_STEP.min(limit - found.len());
        let summaries = session.list(now, (&last.0, &last.1), &namespace, part);
        let is_last = summaries.len() < part;
        if let Some(set) = summaries.last().and_then(|it| it.replica_set.clone()) {
            *last = (set.namespace, set.name);
        }
        found.extend(summaries);
        (is_last || found.len() == limit).then(|| std::mem::take(&mut found))
    }
}

/// The differences of a session, the newest first, with their places. One ReplicaSet may have several of one time. The newest of them is
/// number 0, so their numbers stay when the session forgets the oldest.
fn numbered(differences: Vec<v1::Difference>) -> Vec<(Page, v1::Difference)> {
    let mut found: Vec<(Page, _)> = Vec::with_capacity(differences.len());
    for difference in differences {
        let same = found.iter().rev();
        let same = same.take_while(|(_, last): &&(_, v1::Difference)| {
            last.detect_time == difference.detect_time
        });
        let same = same.filter(|(_, last)| last.replica_set == difference.replica_set);
        let page = Page::of_difference(&difference, same.count());
        found.push((page, difference));
    }
    found
}

fn add(answer: &mut v1::ListDifferencesResponse, found: v1::ListDifferencesResponse) {
    let v1::ListDifferencesResponse {
        differences: _,
        shadows,
        compared,
        agreements,
        deleted_by_others,
        replica_sets,
        start_time,
        stale_views: _,
        next_page_token: _,
    } = found;
    answer.shadows += shadows;
    answer.compared += compared;
    answer.deleted_by_others += deleted_by_others;
    answer.replica_sets += replica_sets;
    let seconds = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    answer.start_time = answer
        .start_time
        .into_iter()
        .chain(start_time)
        .min_by_key(seconds);
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
