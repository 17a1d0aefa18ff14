//! The registry of sessions for all calls of a server, behind a lock, and their shares in the maximum number.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use server_session::{Registered, SessionIdentity, SessionRegistry};

use crate::{
    capacity::{Owner, Share, Shares},
    error::{Limit, Refusal},
    session::SessionHandle,
};

#[derive(Debug)]
pub(crate) struct LiveSessions {
    sessions: Mutex<SessionRegistry<SessionHandle>>,
    shares: Arc<Shares>,
}

/// The entry of a session in the registry and its share, given back on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
    _share: Share,
}

// === impl LiveSessions ===

impl LiveSessions {
    /// `max` is the maximum number of sessions.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            sessions: Mutex::default(),
            shares: Shares::new(max, Limit::Sessions.refusal(max)),
        }
    }

    /// Registers a session. The session that it supersedes is told to end, and the new session inherits its share. A session that is refused
    /// takes nothing from any other.
    pub(crate) fn register(
        self: &Arc<Self>,
        mut session: Registered<SessionHandle>,
        owner: Owner,
    ) -> Result<Registration, Refusal> {
        let identity = Arc::clone(&session.identity);
        let mut sessions = self.lock();
        let predecessor = sessions.predecessor(&identity)?;
        let inherited = predecessor.and_then(|it| it.handle.share);
        let end_signal = session.handle.end_signal.clone();
        let share = self.shares.take(owner, end_signal, inherited)?;
        session.handle.share = Some(share.id());
        let superseded = sessions.register(session)?;
        drop(sessions);
        if let Some((older, why)) = superseded {
            older.handle.end_signal.send(why.into());
        }
        Ok(Registration {
            registry: Arc::clone(self),
            identity,
            _share: share,
        })
    }

    /// Whether an owner without sessions would get one.
    pub(crate) fn has_room(&self) -> bool {
        self.shares.has_room()
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
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Registration ===

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.identity);
    }
}

#[cfg(test)]
pub(crate) mod tests;
