//! One ReplicaSet: its state, its last decisions, and its pods.

use decree_api::v1::{self, inspection_service_server::InspectionService as _};

use super::{
    answer::Refused,
    pods::pods,
    reader::PageReader,
    state::{ConsoleState, ask},
};
use crate::access::Caller;

/// Sends the changes of a ReplicaSet. An absent ReplicaSet may appear later.
pub(crate) async fn poll(
    subject: &v1::GetReplicaSetRequest,
    state: &ConsoleState,
    caller: &Caller,
    reader: &mut PageReader,
) -> Result<(), Refused> {
    // The decisions are as new as the pods, and come first, because they name the pods.
    let is_kubernetes = state.is_kubernetes(caller, &subject.cluster);
    let read = state.compute(caller, subject, move |around, _| {
        Ok(pods(&around, is_kubernetes))
    });
    let pods = if_there(read.await)?;
    let request = ask(caller, subject.clone());
    let found = state.inspection.get_replica_set(request).await;
    let replica_set = if_there(found.map_err(Refused::from))?.map(|found| {
        let mut found = found.into_inner();
        if let Some(summary) = &mut found.summary {
            summary.template_labels.clear();
        }
        state.json("GetReplicaSetResponse", &found)
    });
    for (name, data) in [("replicaset", replica_set), ("pods", pods)] {
        let data = data.unwrap_or_else(|| "null".to_owned());
        reader.show(name, data).await;
    }
    Ok(())
}

/// `None` if the ReplicaSet is absent at present, or its pods exceed the limit of a decision.
fn if_there<T>(answer: Result<T, Refused>) -> Result<Option<T>, Refused> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(refused) if refused.is_absence() => Ok(None),
        Err(other) => Err(other),
    }
}
