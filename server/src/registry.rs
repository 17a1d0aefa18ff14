//! Who is connected: the one live session of each cluster and shard.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc;

use crate::{
    error::Refusal,
    session::{Ask, Ending, Identity},
};

/// All live sessions of the server.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<BTreeMap<(String, String), Member>>);

/// A live session, as others see it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) identity: Arc<Identity>,
    pub(crate) asks: mpsc::Sender<Ask>,
    pub(crate) ending: Ending,
}

/// A session's place in the registry, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    registry: Arc<Registry>,
    identity: Arc<Identity>,
}

// === impl Registry ===

impl Registry {
    /// Seats a session. An older one of the same cluster and shard is told to end, unless its epoch is higher.
    pub(crate) fn seat(self: Arc<Self>, member: Member) -> Result<Seat, Refusal> {
        let identity = Arc::clone(&member.identity);
        let mut members = self.lock();
        if let Some(older) = members.get(&place(&identity)) {
            let (epoch, newest) = (identity.epoch, older.identity.epoch);
            if epoch < newest {
                return Err(Refusal::EpochTooOld { epoch, newest });
            }
            older.ending.order(Refusal::Superseded {
                by: identity.session_id.clone(),
                agent: identity.agent_instance.clone(),
                epoch,
            });
        }
        members.insert(place(&identity), member);
        drop(members);
        Ok(Seat {
            registry: self,
            identity,
        })
    }

    /// Returns the live sessions of a cluster, named by uid or name, or of all; sorted by cluster and shard.
    pub(crate) fn of(&self, cluster: &str) -> Vec<Member> {
        let members = self.lock();
        let mut found: Vec<_> = members
            .values()
            .filter(|member| member.identity.is_of(cluster))
            .cloned()
            .collect();
        drop(members);
        found.sort_by(|left, right| left.identity.order().cmp(&right.identity.order()));
        found
    }

    /// Tells all sessions to end.
    pub(crate) fn end_all(&self, why: &Refusal) {
        for member in self.lock().values() {
            member.ending.order(why.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, String), Member>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(identity: &Identity) -> (String, String) {
    (identity.cluster_uid.clone(), identity.shard.clone())
}

// === impl Seat ===

impl Drop for Seat {
    fn drop(&mut self) {
        let mut members = self.registry.lock();
        let place = place(&self.identity);
        if members
            .get(&place)
            .is_some_and(|held| held.identity.session_id == self.identity.session_id)
        {
            members.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests;
