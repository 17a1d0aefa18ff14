//! All ReplicaSets that the caller may see: first the complete list, then the changes.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use decree_api::v1::{self, inspection_service_server::InspectionService as _};
use prost::Message;
use serde_json::{Value, json};

use super::{
    answer::Refused,
    reader::{PageReader, event, seconds},
    state::{ConsoleState, ask},
};
use crate::{access::Caller, clock, visible::visible};

/// The number of ReplicaSets in one request to a session, and the maximum number of rows in an event.
const PAGE: i32 = 500;

/// The board that a reader has: a hash of each row, by cluster and uid. The sessions have the rows themselves.
#[derive(Debug, Default)]
pub(crate) struct Board {
    sent: HashMap<String, u64>,
}

impl Board {
    /// Sends the changed rows, page by page, and then the state of the board.
    pub(crate) async fn poll(
        &mut self,
        state: &ConsoleState,
        caller: &Caller,
        reader: &mut PageReader,
    ) -> Result<(), Refused> {
        let mut seen = HashSet::with_capacity(self.sent.len());
        let mut page_token = String::new();
        let mut is_complete = true;
        let stale = loop {
            let request = v1::ListReplicaSetsRequest {
                page_size: PAGE,
                page_token,
                ..v1::ListReplicaSetsRequest::default()
            };
            let page = state
                .inspection
                .list_replica_sets(ask(caller, request))
                .await?;
            let page = page.into_inner();
            let mut rows = Vec::new();
            for mut summary in page.replica_sets {
                summary.template_labels.clear();
                let key = key(&summary);
                if self.note(&key, &summary) {
                    rows.push(state.json("ReplicaSetSummary", &summary));
                }
                seen.insert(key);
            }
            if !rows.is_empty() {
                let rows = format!("[{}]", rows.join(","));
                reader.send(event("rows", &rows)).await;
            }
            is_complete &= page.stale_views.iter().all(|view| !view.missing);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                break page.stale_views;
            }
        };
        // The rows of a session that did not answer stay.
        let gone = self.sent.keys().filter(|key| !seen.contains(*key));
        let gone: Vec<_> = gone.filter(|_| is_complete).cloned().collect();
        if is_complete {
            self.sent.retain(|key, _| seen.contains(key));
        }
        let sessions = visible(&state.shared, caller, "");
        let synced = sessions
            .iter()
            .filter(|one| one.handle.shown.stats().synced);
        // The board is up to date.
        let data = json!({
            "seconds": seconds(clock::now()),
            "gone": gone,
            "sessions": sessions.len(),
            "synced": synced.count(),
            "kubernetes": state.is_kubernetes(caller, ""),
            "stale": stale.iter().map(stale_view).collect::<Vec<_>>(),
        });
        reader.send(event("board", &data.to_string())).await;
        Ok(())
    }

    /// Remembers a row. Returns whether it has changed.
    fn note(&mut self, key: &str, summary: &v1::ReplicaSetSummary) -> bool {
        let mut hasher = DefaultHasher::new();
        summary.encode_to_vec().hash(&mut hasher);
        let hash = hasher.finish();
        self.sent.insert(key.to_owned(), hash) != Some(hash)
    }
}

/// A stale view, with its age in whole seconds.
fn stale_view(view: &v1::StaleView) -> Value {
    let age = view.age.unwrap_or_default();
    json!({"cluster": view.cluster, "shard": view.shard, "age": age.seconds, "missing": view.missing})
}

fn key(summary: &v1::ReplicaSetSummary) -> String {
    let uid = summary.replica_set.as_ref().map(|object| &*object.uid);
    format!("{} {}", uid.unwrap_or_default(), summary.cluster)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sent_again_only_where_they_changed() {
        let mut board = Board::default();
        let mut summary = v1::ReplicaSetSummary::default();
        let key = key(&summary);
        assert!(board.note(&key, &summary));
        assert!(!board.note(&key, &summary));
        summary.ready += 1;
        assert!(board.note(&key, &summary));
    }
}
