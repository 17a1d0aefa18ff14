//! Which shards an agent takes and which it gives back, so that the agents that are there share a cluster out evenly.
//!
//! Each agent renews a Lease of its own, by which the others know that it is there, and holds the Lease of each shard that it serves. All
//! read the same list of Leases and derive from it, alike, who should have which shard. Nothing is agreed upon: agents that see different
//! lists may want the same shard, and its Lease lets only one of them have it.
//!
//! **Invariant:** what an assignment says moves work and never makes it safe: that a shard is served once is for its [`Lease`] alone.
//!
//! **Invariant:** with lists that agree, agents differ by one shard at most, and no shard moves that need not.
//!
//! As in [`lease`], whether a Lease has run out is told by this process's own clock, from when it was last seen to change.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU16,
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    backoff::since,
    lease::{self, Lease, Record, Sighting},
};

/// After how many of its durations the Lease of an agent that is gone is deleted.
const FORGOTTEN_AFTER: u32 = 10;

/// Who shares out which cluster.
#[derive(Clone, Debug)]
pub struct AssignmentConfig {
    /// The Lease by which all agents of this number of shards exclude those of another; its name begins the names of the others.
    pub lease: lease::LeaseConfig,
    /// How many shards there are.
    pub shards: NonZeroU16,
}

/// What an agent is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The shards to take.
    pub take: Vec<u16>,
    /// The shards to give back: others have fewer.
    pub give_back: Vec<u16>,
}

/// The Leases of the agents and shards of a cluster, as one agent sees them.
#[derive(Clone, Debug)]
pub struct Assignment {
    config: AssignmentConfig,
    /// By name.
    seen: BTreeMap<String, Sighting>,
    /// The Leases of shards that are not there any more, by name.
    gone: BTreeMap<String, Sighting>,
    /// The agents whose Lease of a shard ran out: each is gone, even if its own Lease has some time left, until that is renewed.
    lost: BTreeSet<String>,
}

/// Who holds a Lease whose version went back, as long as nobody knows.
static UNKNOWN: String = String::new();

// === impl AssignmentConfig ===

impl AssignmentConfig {
    /// Returns the Lease that excludes agents of another number of shards, and those that serve the whole cluster. All agents of this number
    /// hold it together, so none gives it back.
    #[must_use]
    pub fn layout(&self) -> lease::LeaseConfig {
        lease::LeaseConfig {
            identity: format!("{} shards", self.shards),
            shared: true,
            ..self.lease.clone()
        }
    }

    /// Returns the Lease that says that this agent is there.
    #[must_use]
    pub fn member(&self) -> lease::LeaseConfig {
        lease::LeaseConfig {
            name: format!("{}{}", self.member_prefix(), self.lease.identity),
            ..self.lease.clone()
        }
    }

    /// Returns the Lease of a shard.
    #[must_use]
    pub fn shard(&self, index: u16) -> lease::LeaseConfig {
        lease::LeaseConfig {
            name: format!("{}-{index}", self.lease.name),
            ..self.lease.clone()
        }
    }

    /// Returns how often the Leases are listed: so much later than it could be an agent is missed.
    #[must_use]
    pub fn list_every(&self) -> Duration {
        self.lease.duration / 15
    }

    fn member_prefix(&self) -> String {
        format!("{}-member-", self.lease.name)
    }
}

// === impl Assignment ===

impl Assignment {
    /// Returns an assignment that nothing is known of.
    #[must_use]
    pub const fn new(config: AssignmentConfig) -> Self {
        Self {
            config,
            seen: BTreeMap::new(),
            gone: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Takes all Leases of the namespace, by name. Others than those of this cluster's agents and shards are left out. One that is gone was
    /// deleted, or is not in the backup that the cluster was restored from: who holds it leads until it has run out.
    pub fn handle_list(&mut self, now: Timestamp, leases: Vec<(String, Record)>) {
        let mut before = std::mem::take(&mut self.seen);
        let prefix = format!("{}-", self.config.lease.name);
        let members = self.config.member_prefix();
        for (name, record) in leases {
            if !name.starts_with(&prefix) {
                continue;
            }
            let before = before.remove(&name).or_else(|| self.gone.remove(&name));
            let is_unchanged = before.as_ref().is_some_and(|seen| seen.record == record);
            if !is_unchanged && name.starts_with(&members) {
                self.lost.remove(&record.holder);
            }
            let duration = self.config.lease.duration;
            let seen = Sighting::next(before.as_ref(), now, record, duration);
            self.seen.insert(name, seen);
        }
        for index in 0..self.config.shards.get() {
            let name = self.config.shard(index).name;
            if let Some(gone) = before.remove(&name) {
                self.gone.insert(name, gone);
            }
        }
    }

    /// Returns what to do. An agent that does not see its own Lease takes nothing yet, because the other agents cannot count it.
    #[must_use]
    pub fn plan(&mut self, now: Timestamp) -> Plan {
        self.note_lost(now);
        let identity = &self.config.lease.identity;
        let members = self.members(now);
        if !members.contains(identity.as_str()) {
            return Plan::default();
        }
        let holders = self.holders(now);
        let targets = targets(&members, &holders);
        let mut plan = Plan::default();
        let own = holders.iter().enumerate().rev();
        let own = own.filter(|(_, holder)| **holder == Some(identity));
        let mut own: Vec<u16> = own.filter_map(|(index, _)| index.try_into().ok()).collect();
        let target = targets.get(identity.as_str()).copied().unwrap_or(0);
        own.truncate(own.len().saturating_sub(target));
        plan.give_back = own;
        // What an agent that is gone or about to go still holds is shared out with the rest, so that lists agree that show more of it or
        // less; it is taken when it is free.
        let is_left =
            |holder: &Option<&String>| holder.is_none_or(|it| !members.contains(it.as_str()));
        let left = holders.iter().enumerate();
        let mut left = left.filter(|(_, holder)| is_left(holder));
        for (member, target) in &targets {
            let lacks = target.saturating_sub(count_of(&holders, member));
            let assigned = left.by_ref().take(lacks);
            if member == identity {
                let free = assigned.filter(|(_, holder)| holder.is_none());
                plan.take = free
                    .filter_map(|(index, _)| index.try_into().ok())
                    .collect();
                break;
            }
            assigned.for_each(drop);
        }
        plan
    }

    /// Returns the Lease of a shard that is to be taken, with what is known of it: when another's ran out need not be found out again.
    #[must_use]
    pub fn lease_of(&self, now: Timestamp, shard: u16) -> Lease {
        let config = self.config.shard(shard);
        match self.sighting(shard) {
            Some(seen) => Lease::seen(config, now, seen.clone()),
            None => Lease::new(config),
        }
    }

    /// Returns when [`plan`](Self::plan) may say something else though no list came: a Lease runs out.
    #[must_use]
    pub fn poll_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.seen.values().chain(self.gone.values());
        let ends = ends.map(Sighting::until);
        ends.filter(|until| *until > now).min()
    }

    /// Returns the names of the Leases of agents that are long gone, with the versions as which they are to be deleted.
    pub fn forgotten(&self, now: Timestamp) -> impl Iterator<Item = (&str, &str)> {
        let prefix = self.config.member_prefix();
        let members = self.seen.iter();
        let members = members.filter(move |(name, _)| name.starts_with(&prefix));
        let gone = members.filter(move |(_, seen)| {
            since(now, seen.since()) > self.config.lease.duration * FORGOTTEN_AFTER
        });
        gone.map(|(name, seen)| (name.as_str(), seen.record.resource_version.as_str()))
    }

    fn note_lost(&mut self, now: Timestamp) {
        let shards = 0..self.config.shards.get();
        let leases = shards.filter_map(|index| self.seen.get(&self.config.shard(index).name));
        let over = leases.filter(|seen| seen.until() <= now && !seen.record.holder.is_empty());
        let holders = over.map(|seen| seen.record.holder.clone());
        self.lost.extend(holders.collect::<Vec<_>>());
        self.lost.remove(&self.config.lease.identity);
        // Of whom no Lease speaks any more nothing need be known: each agent has a name of its own.
        let named: BTreeSet<_> = self.seen.values().map(|seen| &seen.record.holder).collect();
        self.lost.retain(|holder| named.contains(holder));
    }

    /// Returns the agents that are there.
    fn members(&self, now: Timestamp) -> BTreeSet<&str> {
        let prefix = self.config.member_prefix();
        let members = self.seen.iter();
        let members = members.filter(|(name, _)| name.starts_with(&prefix));
        let holders = members.filter_map(|(_, seen)| holder(seen, now));
        holders
            .filter(|holder| !holder.is_empty() && !self.lost.contains(*holder))
            .map(String::as_str)
            .collect()
    }

    /// Returns the Lease of a shard as it was last seen.
    fn sighting(&self, shard: u16) -> Option<&Sighting> {
        let name = self.config.shard(shard).name;
        self.seen.get(&name).or_else(|| self.gone.get(&name))
    }

    /// Returns who has each shard.
    fn holders(&self, now: Timestamp) -> Vec<Option<&String>> {
        let shards = 0..self.config.shards.get();
        shards
            .map(|index| self.sighting(index))
            .map(|seen| seen.and_then(|seen| holder(seen, now)))
            .collect()
    }
}

/// Returns how many shards each agent should have: those that have the most keep one more than others, where it does not come out even.
fn targets<'a>(
    members: &BTreeSet<&'a str>,
    holders: &[Option<&String>],
) -> BTreeMap<&'a str, usize> {
    let mut by_count: Vec<&str> = members.iter().copied().collect();
    by_count.sort_by_key(|member| (Reverse(count_of(holders, member)), *member));
    let (least, more) = (holders.len() / members.len(), holders.len() % members.len());
    let targets = by_count.into_iter().enumerate();
    targets
        .map(|(rank, member)| (member, least + usize::from(rank < more)))
        .collect()
}

fn count_of(holders: &[Option<&String>], member: &str) -> usize {
    let own = holders.iter().flatten().filter(|it| it.as_str() == member);
    own.count()
}

/// Returns who holds a Lease; somebody without a name where nobody knows.
fn holder(seen: &Sighting, now: Timestamp) -> Option<&String> {
    let holder = Some(&seen.record.holder).filter(|it| !it.is_empty() && now < seen.until());
    holder.or_else(|| seen.is_unknown(now).then_some(&UNKNOWN))
}

#[cfg(test)]
mod tests;
