//! One ReplicaSet: its state, its last decisions, and its pods.

use decree::v1;

use crate::{
    answer::Refused, backend::Caller, console_state::ConsoleState, pods::pods, reader::PageReader,
};

/// Sends the changes of a ReplicaSet. An absent ReplicaSet may appear later.
pub(crate) async fn poll(
    subject: &v1::GetReplicaSetRequest,
    state: &ConsoleState,
    caller: &Caller,
    reader: &mut PageReader,
) -> Result<(), Refused> {
    let found = state.server.get_replica_set(caller.ask(subject.clone()));
    let (replica_set, pods) = match found.await.map_err(Refused::from) {
        Ok(found) => {
            let mut found = found.into_inner();
            if let Some(summary) = &mut found.summary {
                summary.template_labels.clear();
            }
            let read = Box::new(|gathered: &[_]| pods(gathered).to_string());
            let pods = state.server.read(caller, subject, read).await?;
            (state.json("GetReplicaSetResponse", &found), pods)
        }
        Err(refused) if refused.is_absence() => ("null".to_owned(), None),
        Err(other) => return Err(other),
    };
    // No pods, too, if the input exceeds the limit of a decision, or the session has just ended.
    let pods = pods.unwrap_or_else(|| "null".to_owned());
    reader.show("pods", pods).await;
    reader.show("replicaset", replica_set).await;
    Ok(())
}
