//! Who is connected, for all calls of a server: the registry of sessions behind a lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use server_session::{Registered, SessionIdentity, SessionRegistry};

use crate::{error::Refusal, session::SessionHandle};

/// All live sessions of the server.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<SessionRegistry<SessionHandle>>);

/// A session's place in the registry, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
}

// === impl LiveSessions ===

impl LiveSessions {
    /// Registers a session. The one that it supersedes is told to end.
    pub(crate) fn register(
        self: Arc<Self>,
        session: Registered<SessionHandle>,
    ) -> Result<Registration, Refusal> {
        let identity = Arc::clone(&session.identity);
        let superseded = self.lock().register(session)?;
        if let Some((older, why)) = superseded {
            older.handle.end_signal().send(why.into());
        }
        Ok(Registration {
            registry: self,
            identity,
        })
    }

    /// Returns the live sessions of a cluster, named by uid or name, or of all; sorted by cluster and shard.
    pub(crate) fn of(&self, cluster: &str) -> Vec<Registered<SessionHandle>> {
        self.lock().of(cluster).into_iter().cloned().collect()
    }

    /// Tells all sessions to end.
    pub(crate) fn end_all(&self, why: &Refusal) {
        for session in self.lock().iter() {
            session.handle.end_signal().send(why.clone());
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
