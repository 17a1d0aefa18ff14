//! The registry of sessions for all calls of a server, behind a lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use server_session::{Registered, SessionIdentity, SessionRegistry};

use crate::{error::Refusal, session::SessionHandle};

#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<SessionRegistry<SessionHandle>>);

/// The entry of a session in the registry, removed on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
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
        if let Some((older, why)) = superseded {
            older.handle.end_signal.send(why.into());
        }
        Ok(Registration {
            registry: self,
            identity,
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Registration ===

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.identity);
    }
}

#[cfg(test)]
mod tests;
