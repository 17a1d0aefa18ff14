//! Which session shows the gauges of a cluster and shard: the one that opened last. A session that it has superseded may end after it began.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The labels of a session: its cluster as people call it, the cluster's uid and the shard. One session at a time has a uid and a
/// shard, and of one identity, so that no session can show or remove a gauge of another cluster's.
pub(crate) type SessionLabels = [(&'static str, String); 3];

/// The labels of a session, and why its ReplicaSets have not converged.
pub(crate) type UnconvergedLabels = [(&'static str, String); 4];

/// The newest session for each pair of labels, by its id. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest(Arc<Mutex<HashMap<SessionLabels, String>>>);

// === impl Newest ===

impl Newest {
    /// Notes that a session with these labels opens.
    pub(crate) fn open(&self, labels: &SessionLabels, session_id: &str) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.insert(labels.clone(), session_id.to_owned());
    }

    /// Notes that a session with these labels ends. Returns whether no newer one shows them.
    pub(crate) fn close(&self, labels: &SessionLabels, session_id: &str) -> bool {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newest = newest
            .get(labels)
            .is_some_and(|newest| newest == session_id);
        if is_newest {
            newest.remove(labels);
        }
        is_newest
    }
}
