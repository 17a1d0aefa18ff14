//! One ReplicaSet: its state, its last decisions, and its pods.

use decree::v1;

use crate::{
    answer::Refused,
    backend::{Caller, ReplicaSetName},
    console_state::ConsoleState,
    event::event,
    pods::pods,
    reader::PageReader,
};

/// The followed ReplicaSet, and the data that its reader has.
#[derive(Debug)]
pub(crate) struct ReplicaSetView {
    subject: ReplicaSetName,
    standing: String,
    pods: String,
}

// === impl ReplicaSetView ===

impl ReplicaSetView {
    pub(crate) const fn of(subject: ReplicaSetName) -> Self {
        Self {
            subject,
            standing: String::new(),
            pods: String::new(),
        }
    }

    /// The request for the decisions of the ReplicaSet when they are made.
    pub(crate) fn watch(&self) -> v1::WatchDecisionsRequest {
        let ReplicaSetName {
            cluster,
            namespace,
            name,
        } = self.subject.clone();
        v1::WatchDecisionsRequest {
            cluster,
            namespace,
            name,
        }
    }

    /// Sends the changes of the ReplicaSet. An absent ReplicaSet may appear later.
    pub(crate) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut PageReader,
    ) -> Result<(), Refused> {
        let ReplicaSetName {
            cluster,
            namespace,
            name,
        } = self.subject.clone();
        let request = v1::GetReplicaSetRequest {
            cluster,
            namespace,
            name,
        };
        let found = state.server.get_replica_set(caller, request).await;
        let standing = match found.map_err(Refused::from) {
            Ok(mut found) => {
                if let Some(summary) = &mut found.summary {
                    summary.template_labels.clear();
                }
                state.json.text("GetReplicaSetResponse", &found)
            }
            Err(refused) if refused.is_absence() => "null".to_owned(),
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

    /// The pods; `null` if the input exceeds the limit of a decision, or the session has just ended.
    async fn look_at_pods(&self, state: &ConsoleState, caller: &Caller) -> Result<String, Refused> {
        let read = Box::new(|gathered: &[_]| pods(gathered).to_string());
        let pods = state.server.read(caller, &self.subject, read).await?;
        Ok(pods.unwrap_or_else(|| "null".to_owned()))
    }
}
