//! The one live session of each cluster and shard, and the lost creates that ended sessions leave to the next ones.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use decree_core::Ledger;

use crate::{hello::SessionIdentity, refusal::Refusal};

/// The maximum number of accounts and requests that all ended sessions together leave. Beyond it, the oldest are dropped.
const ACCOUNTS_MAX: usize = 10_000;

/// The UID and the shard of a cluster.
type Place = (String, String);

/// The live sessions of a server, each with a handle of type `T` for its owner.
#[derive(Clone, Debug)]
pub struct SessionRegistry<T> {
    live: BTreeMap<Place, Registered<T>>,
    /// What the last session of a place left, with the time of its end.
    left: BTreeMap<Place, (Duration, Ledger)>,
}

/// A live session.
#[derive(Clone, Debug)]
pub struct Registered<T> {
    /// The identity of the session.
    pub identity: Arc<SessionIdentity>,
    /// The owner's handle.
    pub handle: T,
}

impl<T> Default for SessionRegistry<T> {
    fn default() -> Self {
        Self {
            live: BTreeMap::new(),
            left: BTreeMap::new(),
        }
    }
}

impl<T> SessionRegistry<T> {
    /// The session that a new one would supersede: the session of the same cluster and shard.
    ///
    /// # Errors
    /// If that session has a higher epoch.
    pub fn predecessor(&self, of: &SessionIdentity) -> Result<Option<&Registered<T>>, Refusal> {
        let older = self.live.get(&place(of));
        match older.map(|older| older.identity.epoch) {
            Some(newest) if of.epoch < newest => Err(Refusal::EpochTooOld {
                epoch: of.epoch,
                newest,
            }),
            Some(_) | None => Ok(older),
        }
    }

    /// Registers a session. Returns the session of the same cluster and shard that it supersedes, with the refusal for that session.
    ///
    /// # Errors
    /// If the registered session has a higher epoch.
    pub fn register(
        &mut self,
        session: Registered<T>,
    ) -> Result<Option<(Registered<T>, Refusal)>, Refusal> {
        let identity = Arc::clone(&session.identity);
        self.predecessor(&identity)?;
        let superseded = self.live.insert(place(&identity), session);
        let refusal = || Refusal::Superseded {
            by: identity.session_id.clone(),
            agent: identity.agent_instance.clone(),
            epoch: identity.epoch,
        };
        Ok(superseded.map(|older| (older, refusal())))
    }

    /// Removes a session that has ended. A session that has superseded it stays.
    pub fn remove(&mut self, identity: &SessionIdentity) {
        let place = place(identity);
        let held = self.live.get(&place);
        if held.is_some_and(|held| held.identity.session_id == identity.session_id) {
            self.live.remove(&place);
        }
    }

    /// Keeps the lost creates of a session that has ended at `now`, by a monotonic clock, for the next session of its cluster and shard.
    pub fn keep(&mut self, now: Duration, identity: &SessionIdentity, left: Ledger) {
        if !left.is_empty() {
            self.left.insert(place(identity), (now, left));
        }
        while self.left.values().map(|(_, it)| it.len()).sum::<usize>() > ACCOUNTS_MAX {
            let oldest = self.left.iter().min_by_key(|(_, (at, _))| *at);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            self.left.remove(&oldest);
        }
    }

    /// Takes the lost creates that the last session of a cluster and shard left, with the time since its end.
    pub fn take(
        &mut self,
        now: Duration,
        identity: &SessionIdentity,
    ) -> Option<(Ledger, Duration)> {
        let (at, left) = self.left.remove(&place(identity))?;
        Some((left, now.saturating_sub(at)))
    }

    /// The live sessions, in the order of cluster UID and shard.
    pub fn iter(&self) -> impl Iterator<Item = &Registered<T>> {
        self.live.values()
    }

    /// The live sessions of a cluster, by its UID or name, or of all clusters for the empty text, in the order for people.
    pub fn of(&self, cluster: &str) -> Vec<&Registered<T>> {
        let mut found: Vec<_> = self
            .iter()
            .filter(|session| session.identity.is_of(cluster))
            .collect();
        found.sort_by(|left, right| left.identity.order().cmp(&right.identity.order()));
        found
    }
}

fn place(identity: &SessionIdentity) -> Place {
    (identity.cluster_uid.clone(), identity.shard.clone())
}

#[cfg(test)]
mod tests;
