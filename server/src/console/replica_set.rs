//! One ReplicaSet: how it stands, its last decisions, and its pods.

use std::sync::Arc;

use decree::v1;
use tokio::time::Instant;

use super::{console_state::ConsoleState, event::event, pods::pods, reader::Reader};
use crate::{
    access::Caller,
    error::{Limit, Refusal},
    inspection::{Inspection, find},
    service::Decisions,
};

/// Which ReplicaSet is followed, and what was sent of it.
#[derive(Debug)]
pub(super) struct ReplicaSet {
    cluster: String,
    namespace: String,
    name: String,
    standing: String,
    pods: String,
}

// === impl ReplicaSet ===

impl ReplicaSet {
    pub(super) const fn of(cluster: String, namespace: String, name: String) -> Self {
        Self {
            cluster,
            namespace,
            name,
            standing: String::new(),
            pods: String::new(),
        }
    }

    /// Returns the request for its decisions as they are made.
    pub(super) fn watch(&self) -> v1::WatchDecisionsRequest {
        v1::WatchDecisionsRequest {
            cluster: self.cluster.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Sends what changed of it. One that is not there may come.
    pub(super) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut Reader,
    ) -> Result<(), Refusal> {
        let inspection = Inspection(Arc::clone(&state.shared));
        let request = v1::GetReplicaSetRequest {
            cluster: self.cluster.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        let standing = match inspection.describe(caller.clone(), request).await {
            Ok(mut found) => {
                if let Some(summary) = &mut found.summary {
                    summary.template_labels.clear();
                }
                state.json.text("GetReplicaSetResponse", &found)
            }
            Err(
                Refusal::ReplicaSetUnknown { .. }
                | Refusal::ClusterUnknown(_)
                | Refusal::SessionEnded,
            ) => "null".to_owned(),
            Err(other) => return Err(other),
        };
        let pods = match &*standing {
            "null" => "null".to_owned(),
            _ => self.look_at_pods(state, caller).await?,
        };
        if pods != self.pods {
            reader.send(event("pods", &pods)).await;
            self.pods = pods;
        }
        if standing != self.standing {
            reader.send(event("replicaset", &standing)).await;
            self.standing = standing;
        }
        Ok(())
    }

    /// Returns its pods; `null` where there are more around it than a decision is made from, or its session has just ended.
    async fn look_at_pods(&self, state: &ConsoleState, caller: &Caller) -> Result<String, Refusal> {
        let decisions = Decisions(Arc::clone(&state.shared));
        let (namespace, name) = (&*self.namespace, &*self.name);
        let until = Instant::now() + state.shared.config.deadline;
        let permit = decisions.permit(caller).await;
        let mut gathered = Vec::new();
        for one in find(&state.shared, caller, &self.cluster, namespace, name)? {
            match decisions.surroundings(&one.handle, namespace, name).await {
                Ok(around) => gathered.push(around),
                Err(
                    Refusal::SessionEnded
                    | Refusal::Exhausted {
                        what: Limit::DecideObjects,
                        ..
                    },
                ) => return Ok("null".to_owned()),
                Err(other) => return Err(other),
            }
        }
        let written = decisions.beside(permit, until, move |_| Ok(pods(&gathered).to_string()));
        written.await
    }
}
