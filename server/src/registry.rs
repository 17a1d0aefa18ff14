//! The registry of sessions for all calls of a server, behind a lock.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use server_core::Ledger;
use server_session::{Registered, SessionIdentity, SessionRegistry};

use tokio::time::{Instant, timeout};

use crate::{error::Refusal, session::SessionHandle};

/// The maximum time for which a session waits until the session that it supersedes has left.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct LiveSessions {
    registry: Mutex<SessionRegistry<SessionHandle>>,
    /// When the server began, by the monotonic clock.
    begun: Instant,
}

/// The entry of a session in the registry, removed on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
    superseded: Option<SessionHandle>,
}

// === impl LiveSessions ===

impl LiveSessions {
    /// Registers a session. The superseded session is told to end.
    pub(crate) fn register(
        self: Arc<Self>,
        session: Registered<SessionHandle>,
    ) -> Result<Registration, Refusal> {
        let identity = Arc::clone(&session.identity);
        let superseded = self.lock().register(session)?;
        let superseded = superseded.map(|(older, why)| {
            older.handle.end_signal.send(why.into());
            older.handle
        });
        Ok(Registration {
            registry: self,
            identity,
            superseded,
        })
    }

    /// The live sessions of a cluster, by uid or name, or of all clusters for the empty text. Sorted by cluster and shard.
    pub(crate) fn of(&self, cluster: &str) -> Vec<Registered<SessionHandle>> {
        self.lock().of(cluster).into_iter().cloned().collect()
    }

    /// Whether another live session has the cluster, by uid and display name, and the shard of this one.
    pub(crate) fn has_successor(&self, identity: &SessionIdentity) -> bool {
        let registry = self.lock();
        let mut others = registry.iter().map(|session| &session.identity);
        others.any(|it| it.order() == identity.order() && it.session_id != identity.session_id)
    }

    pub(crate) fn end_all(&self, why: &Refusal) {
        for session in self.lock().iter() {
            session.handle.end_signal.send(why.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionRegistry<SessionHandle>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LiveSessions {
    fn default() -> Self {
        Self {
            registry: Mutex::default(),
            begun: Instant::now(),
        }
    }
}

// === impl Registration ===

impl Registration {
    /// Takes the lost creates of the last session of the same cluster and shard, with the time since its end. If this session supersedes
    /// another one, it waits until that one has left, but not for long.
    pub(crate) async fn inherit(&mut self) -> Option<(Ledger, Duration)> {
        if let Some(older) = self.superseded.take() {
            drop(timeout(LEAVE_PATIENCE, older.has_ended()).await);
        }
        let now = self.registry.begun.elapsed();
        self.registry.lock().take(now, &self.identity)
    }

    /// Keeps the lost creates of this session for the next one.
    pub(crate) fn leave(&self, left: Ledger) {
        let now = self.registry.begun.elapsed();
        self.registry.lock().keep(now, &self.identity, left);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.identity);
    }
}

#[cfg(test)]
mod tests;
