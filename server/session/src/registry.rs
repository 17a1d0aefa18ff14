//! The one live session of each cluster and shard.

use std::{collections::BTreeMap, sync::Arc};

use crate::{hello::SessionIdentity, refusal::Refusal};

/// The live sessions of a server, each with a handle of type `T` for its owner.
#[derive(Clone, Debug)]
pub struct SessionRegistry<T>(BTreeMap<(String, String), Registered<T>>);

/// A live session.
#[derive(Clone, Debug)]
pub struct Registered<T> {
    /// The identity of the session.
    pub identity: Arc<SessionIdentity>,
    /// The owner's handle.
    pub handle: T,
}

// === impl SessionRegistry ===

impl<T> Default for SessionRegistry<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> SessionRegistry<T> {
    /// The session that a new one would supersede: the session of the same cluster and shard.
    ///
    /// # Errors
    /// If that session has a higher epoch.
    pub fn predecessor(&self, of: &SessionIdentity) -> Result<Option<&Registered<T>>, Refusal> {
        let older = self.0.get(&place(of));
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
        let superseded = self.0.insert(place(&identity), session);
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
        let held = self.0.get(&place);
        if held.is_some_and(|held| held.identity.session_id == identity.session_id) {
            self.0.remove(&place);
        }
    }

    /// The live sessions, in the order of cluster UID and shard.
    pub fn iter(&self) -> impl Iterator<Item = &Registered<T>> {
        self.0.values()
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

fn place(identity: &SessionIdentity) -> (String, String) {
    (identity.cluster_uid.clone(), identity.shard.clone())
}

#[cfg(test)]
mod tests;
