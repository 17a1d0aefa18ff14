//! Which page is followed, and what is new on it.

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

/// A page as its reader has it: what was sent of it.
#[derive(Debug)]
pub(crate) enum PageView {
    Board(Board),
    ReplicaSet(ReplicaSetView),
    Sessions(Sessions),
    Differences(Differences),
}

// === impl PageView ===

impl PageView {
    /// Reads what a request asks for; nothing of it was sent.
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

    /// Returns the ReplicaSet whose decisions are followed as they are made, if the page shows one.
    pub(crate) const fn subject(&self) -> Option<&ReplicaSetView> {
        match self {
            Self::ReplicaSet(subject) => Some(subject),
            Self::Board(_) | Self::Sessions(_) | Self::Differences(_) => None,
        }
    }

    /// Sends what changed since it was asked last.
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
