//! One ReplicaSet: its state, its last decisions, and its pods.

use std::sync::Arc;

use decree::v1;
use tonic::Status;

use crate::{
    answer::Refused,
    backend::{Caller, DecisionAttempt},
    console_state::ConsoleState,
    pods::pods,
    reader::PageReader,
};

/// Sends the changes of a ReplicaSet. An absent ReplicaSet may appear later.
pub(crate) async fn poll(
    subject: &v1::GetReplicaSetRequest,
    state: &ConsoleState,
    caller: &Caller,
    reader: &mut PageReader,
) -> Result<(), Refused> {
    let (mut replica_set, mut pods) = (None, None);
    let found = state.server.get_replica_set(caller.ask(subject.clone()));
    if let Some(found) = if_there(found.await)? {
        let mut found = found.into_inner();
        if let Some(summary) = &mut found.summary {
            summary.template_labels.clear();
        }
        replica_set = Some(state.json("GetReplicaSetResponse", &found));
        let read: DecisionAttempt =
            Arc::new(|around, _| Ok(self::pods(around).map(|pods| pods.to_string())));
        pods = if_there(state.server.attempt(caller, subject, read).await)?;
    }
    for (name, data) in [("pods", pods), ("replicaset", replica_set)] {
        let data = data.unwrap_or_else(|| "null".to_owned());
        reader.show(name, data).await;
    }
    Ok(())
}

/// `None` if the ReplicaSet is absent at present, or its pods exceed the limit of a decision.
fn if_there<T>(answer: Result<T, Status>) -> Result<Option<T>, Refused> {
    match answer.map_err(Refused::from) {
        Ok(found) => Ok(Some(found)),
        Err(refused) if refused.is_absence() => Ok(None),
        Err(other) => Err(other),
    }
}
