//! The state that all requests for the console share, and what they ask the server.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
};

use decree_api::{
    json::Json,
    v1::{self, inspection_service_server::InspectionService as _},
};
use decree_core::{Costs, Interrupted, Surroundings};
use prost::Message;
use serde_json::{Value, json};
use service::admission::Yields;
use tokio::time::Instant;
use tonic::{Request, Status};

use super::answer::Refused;
use crate::{
    access::Caller,
    inspection::Inspection,
    questions::ask_all,
    service::Decisions,
    shared::Shared,
    visible::{find_cluster, visible},
};

/// The maximum number of nodes in an answer.
const NODES_MAX: usize = 10_000;

/// The slots of streams. A newcomer evicts the oldest stream of the network with most.
type Pool = service::admission::Pool<(), ()>;

/// The console of one server.
#[derive(Debug)]
pub(crate) struct ConsoleState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inspection: Inspection,
    /// Made for the first answer, as it takes megabytes.
    json: LazyLock<Json>,
    pub(crate) pool: Arc<Pool>,
    /// Shared with each stream, to count the streams: they share the allowed time.
    pub(crate) streams: Arc<()>,
}

/// A request of this caller.
pub(crate) fn ask<T>(caller: &Caller, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(caller.clone());
    request
}

impl ConsoleState {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let max = usize::from(shared.config.limits.console_streams_max);
        Self {
            shared: Arc::clone(shared),
            inspection: Inspection(Arc::clone(shared)),
            json: LazyLock::default(),
            pool: Pool::new(max, Yields::Oldest, ()),
            streams: Arc::default(),
        }
    }

    /// A message of the contract in the JSON of the pages, the same as `decree -o json` prints, by the message's name; `null` if JSON cannot
    /// express a value, such as a time after the year 9999.
    pub(crate) fn json(&self, name: &str, message: &impl Message) -> String {
        let text = self.json.text(name, message);
        text.unwrap_or_else(|_| "null".to_owned())
    }

    pub(crate) async fn simulate(
        &self,
        caller: &Caller,
        subject: &v1::GetReplicaSetRequest,
        (replicas, costs): (Option<i32>, HashMap<String, i32>),
    ) -> Result<String, Refused> {
        let decisions = Decisions(Arc::clone(&self.shared));
        let costs = costs.into_iter().map(|(pod, cost)| (pod.into(), cost));
        let costs: Costs = costs.collect();
        let assumed = (replicas, move || Ok(costs));
        let answer = decisions.simulate_for(caller, subject, assumed, self.until(), |it| it);
        Ok(self.json("SimulateResponse", &answer.await?))
    }

    /// Computes a JSON text from the input of a decision on a ReplicaSet, outside the threads that serve sessions and within the server's
    /// deadline. The second argument of `compute` says whether to go on; `None` means that the ReplicaSet is not known.
    pub(crate) async fn compute(
        &self,
        caller: &Caller,
        subject: &v1::GetReplicaSetRequest,
        compute: impl FnOnce(Surroundings, &dyn Fn() -> bool) -> Result<Option<Value>, Interrupted>
        + Send
        + 'static,
    ) -> Result<String, Refused> {
        let decisions = Decisions(Arc::clone(&self.shared));
        let answer = decisions.about(caller, subject, self.until(), move |around, _, go_on| {
            Ok(compute(around, go_on)?.map(|answer| answer.to_string()))
        });
        Ok(answer.await?)
    }

    /// Whether a cluster that the caller may see runs on Kubernetes, or any of them for the empty text. Elsewhere, no command of kubectl helps.
    pub(crate) fn is_kubernetes(&self, caller: &Caller, cluster: &str) -> bool {
        let sessions = visible(&self.shared, caller, cluster);
        sessions.iter().any(|one| one.identity.is_kubernetes)
    }

    fn until(&self) -> Instant {
        Instant::now() + self.shared.config.deadline
    }

    /// The differences of all sessions that the caller may see, of all pages. The sessions remember a limited number.
    pub(crate) async fn differences(
        &self,
        caller: &Caller,
    ) -> Result<v1::ListDifferencesResponse, Status> {
        let mut request = v1::ListDifferencesRequest {
            page_size: i32::MAX,
            ..v1::ListDifferencesRequest::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self
                .inspection
                .list_differences(ask(caller, request.clone()));
            let mut page = page.await?.into_inner();
            found.append(&mut page.differences);
            request.page_token = std::mem::take(&mut page.next_page_token);
            if request.page_token.is_empty() {
                page.differences = found;
                return Ok(page);
            }
        }
    }

    /// The nodes of a cluster by name, each with the number of its active pods.
    pub(crate) async fn nodes(&self, caller: &Caller, cluster: &str) -> Result<String, Refused> {
        let shards = find_cluster(&self.shared, caller, cluster)?;
        let answers = ask_all(&shards, caller, |session, _| {
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
        let is_complete = answers.missing.is_empty() && pods.len() <= NODES_MAX;
        let nodes = pods.iter().take(NODES_MAX);
        let nodes: Vec<_> = nodes.map(|(name, pods)| json!([**name, pods])).collect();
        Ok(json!({"nodes": nodes, "complete": is_complete}).to_string())
    }

    /// The sessions that the caller may see: their peers, and how near they are to their limits.
    pub(crate) fn sessions(&self, caller: &Caller) -> String {
        let (shared, config) = (&self.shared, self.shared.session_config());
        let mut sessions = Vec::new();
        for one in visible(shared, caller, "") {
            let shown = &one.handle.shown;
            let mut summary = shown.summarize(&one.identity, &config);
            // A page shows the age of a stale view only, so that its data changes only then.
            let is_stale = shown.is_stale(config.heartbeat_interval);
            summary.age.take_if(|_| !is_stale);
            let beside = json!({
                "identity": shared.access.identity_of(&one.identity.session_id),
                "quarantined": shown.stats().sizes.quarantined,
            });
            let summary = self.json("SessionSummary", &summary);
            sessions.push(format!("{{\"session\":{summary},\"beside\":{beside}}}"));
        }
        let limits = &shared.config.limits;
        let limits = json!({"sessions": limits.sessions_max, "memory": limits.memory_max});
        let version = service::build_info::text();
        let sessions = sessions.join(",");
        format!("{{\"version\":\"{version}\",\"limits\":{limits},\"sessions\":[{sessions}]}}")
    }
}
