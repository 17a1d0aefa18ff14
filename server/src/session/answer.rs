//! What others ask of a session, and its answers. They come as messages, so that nobody else touches the controller.

use decree::v1;
use server_core::{Timestamp, View};
use tokio::sync::oneshot;

use super::desk::Desk;
use crate::wire::{self, encode};

/// How many of a ReplicaSet's last decisions are shown.
const DECISIONS: usize = 10;

/// A question to a session. Who asks and goes away gets no answer.
#[derive(Debug)]
pub(crate) enum Ask {
    /// ReplicaSets in the order of namespace and name.
    List {
        after: (String, String),
        namespace: String,
        limit: usize,
        reply: oneshot::Sender<Vec<v1::ReplicaSetSummary>>,
    },
    /// One ReplicaSet.
    Describe {
        namespace: String,
        name: String,
        reply: oneshot::Sender<Option<v1::GetReplicaSetResponse>>,
    },
    /// What another number of replicas would lead to.
    Simulate {
        namespace: String,
        name: String,
        replicas: Option<i32>,
        reply: oneshot::Sender<Option<v1::Decision>>,
    },
    /// What another controller did otherwise, and how much was compared; `None` where the mode is not SHADOW.
    Differences {
        namespace: String,
        name: String,
        reply: oneshot::Sender<Option<(Vec<v1::Difference>, u64)>>,
    },
    /// The session itself.
    Summarize {
        reply: oneshot::Sender<v1::SessionSummary>,
    },
}

impl Desk {
    /// Answers a question.
    pub(crate) fn answer(&self, now: Timestamp, ask: Ask) {
        // Who has gone away wants no answer: the send is free to fail.
        match ask {
            Ask::List {
                after: (namespace_after, name_after),
                namespace,
                limit,
                reply,
            } => {
                let after = (namespace_after.as_str(), name_after.as_str());
                drop(reply.send(self.list(now, after, &namespace, limit)));
            }
            Ask::Describe {
                namespace,
                name,
                reply,
            } => {
                drop(reply.send(self.describe(now, &namespace, &name)));
            }
            Ask::Simulate {
                namespace,
                name,
                replicas,
                reply,
            } => {
                let decision = self.controller.simulate(now, &namespace, &name, replicas);
                drop(reply.send(decision.map(encode::decision)));
            }
            Ask::Differences {
                namespace,
                name,
                reply,
            } => {
                let mirror = self.mirror.as_ref();
                drop(reply.send(mirror.map(|mirror| mirror.found(&namespace, &name))));
            }
            Ask::Summarize { reply } => drop(reply.send(self.summarize())),
        }
    }

    fn list(
        &self,
        now: Timestamp,
        after: (&str, &str),
        namespace: &str,
        limit: usize,
    ) -> Vec<v1::ReplicaSetSummary> {
        // A namespace begins after the empty name in it.
        let after = after.max((namespace, ""));
        let views = self.controller.views(now, Some(after), limit);
        let wanted = |view: &View| namespace.is_empty() || *view.key.namespace == *namespace;
        let cluster = self.identity.cluster();
        views
            .into_iter()
            .take_while(wanted)
            .map(|view| encode::summary(cluster, view))
            .collect()
    }

    fn describe(
        &self,
        now: Timestamp,
        namespace: &str,
        name: &str,
    ) -> Option<v1::GetReplicaSetResponse> {
        let view = self.controller.view(now, namespace, name)?;
        let action = self
            .in_flight
            .values()
            .find(|batch| batch.serves(namespace, name));
        let action = action.map_or("batch", |batch| batch.action);
        let in_flight = view
            .in_flight
            .map_or_else(String::new, |(operations, came)| {
                format!("{action} {came} of {operations} outcomes")
            });
        let is_its = |record: &v1::DecisionRecord| {
            let object = record.replica_set.as_ref();
            object.is_some_and(|object| object.namespace == namespace && object.name == name)
        };
        Some(v1::GetReplicaSetResponse {
            in_flight,
            next_sync: view.next_sync.map(encode::time),
            failures: i32::try_from(view.failures).unwrap_or(i32::MAX),
            decisions: self
                .recent
                .iter()
                .rev()
                .filter(|record| is_its(record))
                .take(DECISIONS)
                .map(|record| v1::DecisionRecord::clone(record))
                .collect(),
            summary: Some(encode::summary(self.identity.cluster(), view)),
        })
    }

    fn summarize(&self) -> v1::SessionSummary {
        let identity = &self.identity;
        let sizes = self.controller.sizes();
        let int = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let version = |kind| wire::version(self.controller.version(kind));
        v1::SessionSummary {
            session_id: identity.session_id.clone(),
            cluster_uid: identity.cluster_uid.clone(),
            cluster_name: identity.cluster_name.clone(),
            shard: identity.shard.clone(),
            agent_instance: identity.agent_instance.clone(),
            epoch: identity.epoch,
            mode: identity.mode.into(),
            started: Some(encode::time(identity.started)),
            synced: self.controller.is_synced(),
            replica_sets: int(sizes.replica_sets),
            pods: int(sizes.pods),
            batches_in_flight: int(sizes.batches_in_flight),
            pods_version: version(server_core::Kind::Pod),
            replica_sets_version: version(server_core::Kind::ReplicaSet),
            view_age: self.view_age.map(encode::duration),
        }
    }
}
