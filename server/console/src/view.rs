//! The followed page, and its changes.

use std::collections::HashMap;

use crate::{
    answer::Refused,
    backend::{Caller, ReplicaSetName},
    board::Board,
    console_state::ConsoleState,
    differences::Differences,
    reader::PageReader,
    replica_set::ReplicaSetView,
    sessions::Sessions,
};

/// A page, with the data that its reader has.
#[derive(Debug)]
pub(crate) enum PageView {
    Board(Board),
    ReplicaSet(ReplicaSetView),
    Sessions(Sessions),
    Differences(Differences),
}

// === impl PageView ===

impl PageView {
    pub(crate) fn parse(query: &HashMap<String, String>) -> Result<Self, Refused> {
        let field = |name: &str| query.get(name).cloned().unwrap_or_default();
        match &*field("view") {
            "board" => Ok(Self::Board(Board::default())),
            "replicaset" => Ok(Self::ReplicaSet(ReplicaSetView::of(ReplicaSetName {
                cluster: field("cluster"),
                namespace: field("namespace"),
                name: field("name"),
            }))),
            "sessions" => Ok(Self::Sessions(Sessions::default())),
            "differences" => Ok(Self::Differences(Differences::default())),
            other => {
                let views = "board, replicaset, sessions or differences";
                let description = format!("{other:?} must be {views}");
                Err(Refused::field("view", &description))
            }
        }
    }

    /// The ReplicaSet whose decisions the page follows, if any.
    pub(crate) const fn subject(&self) -> Option<&ReplicaSetView> {
        match self {
            Self::ReplicaSet(subject) => Some(subject),
            Self::Board(_) | Self::Sessions(_) | Self::Differences(_) => None,
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
            Self::Board(board) => board.poll(state, caller, reader).await,
            Self::ReplicaSet(replica_set) => replica_set.poll(state, caller, reader).await,
            Self::Sessions(sessions) => {
                sessions.poll(state, caller, reader).await;
                Ok(())
            }
            Self::Differences(differences) => differences.poll(state, caller, reader).await,
        }
    }
}
