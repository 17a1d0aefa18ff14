//! The registry of sessions for all calls of a server, behind a lock, their slots among the maximum number, and access to each.

use std::{sync::Arc, time::Duration};

use decree_core::Ledger;
use parking_lot::Mutex;
use server_session::{Registered, SessionIdentity, SessionRegistry};
use service::admission::Yields;
use tokio::time::{Instant, timeout};

use crate::{
    capacity::{Owner, Pool, Slot},
    error::Refusal,
};

mod handle;
mod shown;

pub(crate) use self::{
    handle::{Questions, SessionHandle},
    shown::Shown,
};

/// The maximum time for which a session waits until the session that it supersedes has left.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) type LiveSession = Registered<SessionHandle>;

#[derive(Debug)]
pub(crate) struct LiveSessions {
    sessions: Mutex<SessionRegistry<SessionHandle>>,
    pool: Arc<Pool>,
    /// When the server began, by the monotonic clock.
    begun: Instant,
}

/// The entry of a session in the registry and its slot, given back on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    registry: Arc<LiveSessions>,
    identity: Arc<SessionIdentity>,
    _slot: Slot,
    superseded: Option<SessionHandle>,
}

impl LiveSessions {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            sessions: Mutex::default(),
            pool: Pool::new(max, Yields::Newest, Refusal::exhausted("sessions", max)),
            begun: Instant::now(),
        }
    }

    /// Registers a session. The session that it supersedes is told to end, and the new session inherits its slot. A session that is refused
    /// takes nothing from any other.
    pub(crate) fn register(
        self: &Arc<Self>,
        mut session: LiveSession,
        owner: Owner,
    ) -> Result<Registration, Refusal> {
        let identity = Arc::clone(&session.identity);
        let mut sessions = self.sessions.lock();
        let predecessor = sessions.predecessor(&identity)?;
        if let Some(slot) = predecessor.and_then(|it| it.handle.slot.as_ref()) {
            slot.leave();
        }
        let end_signal = session.handle.end_signal.clone();
        let slot = self.pool.take(owner, 1, end_signal)?;
        session.handle.slot = Some(slot.handle().clone());
        let superseded = sessions.register(session)?;
        drop(sessions);
        let superseded = superseded.map(|(older, why)| {
            older.handle.end_signal.send(why.into());
            older.handle
        });
        Ok(Registration {
            registry: Arc::clone(self),
            identity,
            _slot: slot,
            superseded,
        })
    }

    /// The live sessions of a cluster, by uid or name, or of all clusters for the empty text. Sorted by cluster and shard.
    pub(crate) fn of(&self, cluster: &str) -> Vec<LiveSession> {
        self.sessions
            .lock()
            .of(cluster)
            .into_iter()
            .cloned()
            .collect()
    }

    pub(crate) fn end_all(&self, why: &Refusal) {
        for session in self.sessions.lock().iter() {
            session.handle.end_signal.send(why.clone());
        }
    }
}

impl Registration {
    /// Takes the lost creates of the last session of the same cluster and shard, with the time since its end. If this session supersedes
    /// another one, it waits until that one has left, but not for long.
    pub(crate) async fn inherit(&mut self) -> Option<(Ledger, Duration)> {
        if let Some(older) = self.superseded.take() {
            drop(timeout(LEAVE_PATIENCE, older.has_ended()).await);
        }
        let now = self.registry.begun.elapsed();
        self.registry.sessions.lock().take(now, &self.identity)
    }

    /// Keeps the lost creates of this session for the next one.
    pub(crate) fn leave(&self, left: Ledger) {
        let now = self.registry.begun.elapsed();
        self.registry
            .sessions
            .lock()
            .keep(now, &self.identity, left);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.lock().remove(&self.identity);
    }
}
