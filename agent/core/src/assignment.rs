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
    backoff::{after, since},
    lease::{self, Lease, Record},
};

/// After how many of its durations the Lease of an agent that is gone is deleted.
const FORGOTTEN_AFTER: u32 = 10;

/// Who shares out which cluster.
#[derive(Clone, Debug)]
pub struct Config {
    /// The Lease by which all agents of this number of shards exclude those of another; its name begins the names of the others.
    pub lease: lease::Config,
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
    config: Config,
    /// By name.
    seen: BTreeMap<String, Seen>,
    /// The agents whose Lease of a shard ran out: each is gone, even if its own Lease has some time left, until that is renewed.
    lost: BTreeSet<String>,
}

/// A Lease as it was last seen.
#[derive(Clone, Debug)]
struct Seen {
    record: Record,
    /// When it was first seen like this.
    since: Timestamp,
}

// === impl Config ===

impl Config {
    /// Returns the Lease that excludes agents of another number of shards, and those that serve the whole cluster. All agents of this number
    /// hold it together, so none gives it back.
    #[must_use]
    pub fn layout(&self) -> lease::Config {
        lease::Config {
            identity: format!("{} shards", self.shards),
            shared: true,
            ..self.lease.clone()
        }
    }

    /// Returns the Lease that says that this agent is there.
    #[must_use]
    pub fn member(&self) -> lease::Config {
        lease::Config {
            name: format!("{}{}", self.member_prefix(), self.lease.identity),
            ..self.lease.clone()
        }
    }

    /// Returns the Lease of a shard.
    #[must_use]
    pub fn shard(&self, index: u16) -> lease::Config {
        lease::Config {
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
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            seen: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Takes all Leases of the namespace, by name. Others than those of this cluster's agents and shards are left out.
    pub fn handle_list(&mut self, now: Timestamp, leases: Vec<(String, Record)>) {
        let mut before = std::mem::take(&mut self.seen);
        let prefix = format!("{}-", self.config.lease.name);
        let members = self.config.member_prefix();
        for (name, record) in leases {
            if !name.starts_with(&prefix) {
                continue;
            }
            let unchanged = before.remove(&name).filter(|seen| seen.record == record);
            if unchanged.is_none() && name.starts_with(&members) {
                self.lost.remove(&record.holder);
            }
            let since = unchanged.map_or(now, |seen| seen.since);
            self.seen.insert(name, Seen { record, since });
        }
    }

    /// Returns what to do. An agent that does not see its own Lease takes nothing yet: nobody would know whose turn it is.
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
        match self.seen.get(&config.name) {
            Some(Seen { record, since }) => Lease::seen(config, now, record.clone(), *since),
            None => Lease::new(config),
        }
    }

    /// Returns when [`plan`](Self::plan) may say something else though no list came: a Lease runs out.
    #[must_use]
    pub fn poll_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.seen.values().map(Seen::until);
        ends.filter(|until| *until > now).min()
    }

    /// Returns the names of the Leases of agents that are long gone, with the versions as which they are to be deleted.
    pub fn forgotten(&self, now: Timestamp) -> impl Iterator<Item = (&str, &str)> {
        let prefix = self.config.member_prefix();
        let members = self.seen.iter();
        let members = members.filter(move |(name, _)| name.starts_with(&prefix));
        let gone = members.filter(move |(_, seen)| {
            since(now, seen.since) > self.config.lease.duration * FORGOTTEN_AFTER
        });
        gone.map(|(name, seen)| (name.as_str(), seen.record.resource_version.as_str()))
    }

    fn note_lost(&mut self, now: Timestamp) {
        let shards = 0..self.config.shards.get();
        let leases = shards.filter_map(|index| self.seen.get(&self.config.shard(index).name));
        let over = leases.filter(|seen| seen.is_over(now) && !seen.record.holder.is_empty());
        let holders = over.map(|seen| seen.record.holder.clone());
        self.lost.extend(holders.collect::<Vec<_>>());
        self.lost.remove(&self.config.lease.identity);
    }

    /// Returns the agents that are there.
    fn members(&self, now: Timestamp) -> BTreeSet<&str> {
        let prefix = self.config.member_prefix();
        let members = self.seen.iter();
        let members = members.filter(|(name, _)| name.starts_with(&prefix));
        let holders = members.filter_map(|(_, seen)| seen.holder(now));
        holders
            .filter(|holder| !self.lost.contains(*holder))
            .map(String::as_str)
            .collect()
    }

    /// Returns who has each shard.
    fn holders(&self, now: Timestamp) -> Vec<Option<&String>> {
        let shards = 0..self.config.shards.get();
        let leases = shards.map(|index| self.seen.get(&self.config.shard(index).name));
        leases
            .map(|seen| seen.and_then(|seen| seen.holder(now)))
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

// === impl Seen ===

impl Seen {
    fn until(&self) -> Timestamp {
        after(self.since, self.record.duration)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until() <= now
    }

    /// Returns who holds the Lease.
    fn holder(&self, now: Timestamp) -> Option<&String> {
        let holder = Some(&self.record.holder);
        holder.filter(|holder| !holder.is_empty() && !self.is_over(now))
    }
}

#[cfg(test)]
mod tests;
