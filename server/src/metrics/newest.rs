//! The session that shows the gauges of a cluster and shard: the newest one. A superseded session may end after its successor began.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The labels of a session: the display name of its cluster, the cluster's uid and the shard. Only one session at a time has a uid and
/// a shard, always of one identity. So no session can change or remove the gauges of another cluster.
pub(crate) type SessionLabels = [(&'static str, String); 3];

/// The labels of a session, and the reason why its ReplicaSets have not converged.
pub(crate) type UnconvergedLabels = [(&'static str, String); 4];

/// The id of the newest session for each set of labels. Clones share the map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest(Arc<Mutex<HashMap<SessionLabels, String>>>);

// === impl Newest ===

impl Newest {
    pub(crate) fn open(&self, labels: &SessionLabels, session_id: &str) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.insert(labels.clone(), session_id.to_owned());
    }

    /// Removes a session. Returns whether no newer session shows these labels.
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
