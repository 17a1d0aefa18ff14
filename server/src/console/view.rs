//! The followed page, and its changes.

use std::collections::HashMap;

use decree_api::v1;

use super::{answer::Refused, board::Board, reader::PageReader, replica_set, state::ConsoleState};
use crate::access::Caller;

/// A page.
#[derive(Debug)]
pub(crate) enum PageView {
    Board(Board),
    ReplicaSet(v1::GetReplicaSetRequest),
    Sessions,
    Differences,
}

/// The ReplicaSet that a query names.
pub(crate) fn subject(query: &HashMap<String, String>) -> v1::GetReplicaSetRequest {
    let field = |name: &str| query.get(name).cloned().unwrap_or_default();
    v1::GetReplicaSetRequest {
        cluster: field("cluster"),
        namespace: field("namespace"),
        name: field("name"),
        shard: field("shard"),
    }
}

impl PageView {
    pub(crate) fn parse(query: &HashMap<String, String>) -> Result<Self, Refused> {
        match query.get("view").map_or("", String::as_str) {
            "board" => Ok(Self::Board(Board::default())),
            "replicaset" => Ok(Self::ReplicaSet(subject(query))),
            "sessions" => Ok(Self::Sessions),
            "differences" => Ok(Self::Differences),
            other => {
                let views = "board, replicaset, sessions or differences";
                let description = format!("{other:?} must be {views}");
                Err(Refused::field("view", &description))
            }
        }
    }

    /// Sends the changes since the last poll.
    pub(crate) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut PageReader,
    ) -> Result<(), Refused> {
        match self {
            Self::Board(board) => board.poll(state, caller, reader).await?,
            Self::ReplicaSet(subject) => replica_set::poll(subject, state, caller, reader).await?,
            Self::Sessions => {
                reader.show("sessions", state.sessions(caller)).await;
            }
            Self::Differences => {
                let found = state.differences(caller).await?;
                let differences = state.json("ListDifferencesResponse", &found);
                reader.show("differences", differences).await;
            }
        }
        Ok(())
    }
}
