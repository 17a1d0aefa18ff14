//! Which shards an agent takes and gives back, so that the running agents share a cluster evenly.
//!
//! Each agent renews its own Lease, which shows the others that it runs, and holds the Lease of each shard that it serves. All agents read
//! the same list of Leases and derive the same assignment from it. There is no agreement: agents that see different lists may choose the
//! same shard, and its Lease admits only one of them.
//!
//! **Invariant:** an assignment only moves work. The [`Lease`] of a shard alone makes sure that one agent serves it.
//!
//! **Invariant:** with equal lists, the shard counts of agents differ by at most one, and no shard moves without need.
//!
//! As in [`lease`], this process's own clock tells whether a Lease has run out, from when it last saw the Lease change.

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

/// After this many of its durations, the Lease of a lost agent is deleted.
const FORGOTTEN_AFTER: u32 = 10;

/// The cluster that an agent shares, and the Lease of the agent.
#[derive(Clone, Debug)]
pub struct AssignmentConfig {
    /// The Lease by which agents with this number of shards exclude agents with another number. Its name begins the names of the other
    /// Leases.
    pub lease: lease::LeaseConfig,
    /// How many shards there are.
    pub shards: NonZeroU16,
}

/// The shards that an agent is to take or give back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The shards to take.
    pub take: Vec<u16>,
    /// The shards to give back, as other agents have fewer.
    pub give_back: Vec<u16>,
}

/// The Leases of the agents and shards of a cluster, as one agent sees them.
#[derive(Clone, Debug)]
pub struct Assignment {
    config: AssignmentConfig,
    /// By name.
    seen: BTreeMap<String, Sighting>,
    /// The Leases of shards that are deleted, by name.
    gone: BTreeMap<String, Sighting>,
    /// The agents whose Lease of a shard ran out. Such an agent counts as lost until it renews its own Lease, even if that Lease has time
    /// left.
    lost: BTreeSet<String>,
}

// === impl AssignmentConfig ===

impl AssignmentConfig {
    /// Returns the Lease that excludes agents with another number of shards, and agents of the whole cluster. All agents with this number
    /// hold it together, so none gives it back.
    #[must_use]
    pub fn layout(&self) -> lease::LeaseConfig {
        lease::LeaseConfig {
            identity: format!("{} shards", self.shards),
            shared: true,
            ..self.lease.clone()
        }
    }

    /// Returns the Lease that shows that this agent runs.
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

    /// Returns the interval of listing the Leases. A lost agent may be noticed this much later.
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
    /// Creates an assignment that has seen no Leases.
    #[must_use]
    pub const fn new(config: AssignmentConfig) -> Self {
        Self {
            config,
            seen: BTreeMap::new(),
            gone: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Takes all Leases of the namespace, by name, and ignores Leases of other clusters. A missing Lease was deleted, or is not in the
    /// backup from which the cluster was restored. Its holder leads until the Lease has run out.
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

    /// Returns what to do. An agent that does not see its own Lease takes nothing, because the other agents cannot count it yet.
    #[must_use]
    pub fn plan(&mut self, now: Timestamp) -> Plan {
        self.note_lost(now);
        let identity = self.config.lease.identity.as_str();
        let members = self.members(now);
        if !members.contains(identity) {
            return Plan::default();
        }
        let holders = self.holders(now);
        let targets = targets(&members, &holders);
        let own = holders.iter().rev();
        let own = own.filter(|(_, holder)| *holder == Some(identity));
        let mut give_back: Vec<_> = own.map(|(index, _)| *index).collect();
        give_back.truncate(give_back.len().saturating_sub(targets[identity]));
        // Shards of lost or stopping agents are assigned with the rest, so that agents with newer and older lists agree. An agent takes
        // such a shard once it is free.
        let is_left = |holder: Option<&str>| holder.is_none_or(|it| !members.contains(it));
        let left = holders.iter().filter(|(_, holder)| is_left(*holder));
        let lacks = |member: &&str| targets[member].saturating_sub(count_of(&holders, member));
        let before = targets.keys().take_while(|member| **member < identity);
        let assigned = left.skip(before.map(lacks).sum()).take(lacks(&identity));
        let free = assigned.filter(|(_, holder)| holder.is_none());
        Plan {
            take: free.map(|(index, _)| *index).collect(),
            give_back,
        }
    }

    /// Returns the Lease of a shard to take, with what this agent has seen of it. So the agent need not find out again when another's Lease
    /// ran out.
    #[must_use]
    pub fn lease_of(&self, now: Timestamp, shard: u16) -> Lease {
        let config = self.config.shard(shard);
        match self.sighting(shard) {
            Some(seen) => Lease::seen(config, now, seen.clone()),
            None => Lease::new(config),
        }
    }

    /// Returns when [`plan`](Self::plan) may change without a new list, because a Lease runs out.
    #[must_use]
    pub fn poll_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.seen.values().chain(self.gone.values());
        let ends = ends.map(Sighting::until);
        ends.filter(|until| *until > now).min()
    }

    /// Returns the names of the Leases of agents that are long lost, with the versions to delete.
    pub fn forgotten(&self, now: Timestamp) -> impl Iterator<Item = (&str, &str)> {
        let gone = self.member_leases().filter(move |(_, seen)| {
            since(now, seen.since) > self.config.lease.duration * FORGOTTEN_AFTER
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
        // No other agent has the same name, so a name without a Lease can be forgotten.
        let named: BTreeSet<_> = self.seen.values().map(|seen| &seen.record.holder).collect();
        self.lost.retain(|holder| named.contains(holder));
    }

    fn members(&self, now: Timestamp) -> BTreeSet<&str> {
        let leases = self.member_leases();
        let holders = leases.filter_map(|(_, seen)| holder(seen, now));
        holders
            .filter(|holder| !holder.is_empty() && !self.lost.contains(*holder))
            .collect()
    }

    fn member_leases(&self) -> impl Iterator<Item = (&String, &Sighting)> {
        let prefix = self.config.member_prefix();
        let leases = self.seen.iter();
        leases.filter(move |(name, _)| name.starts_with(&prefix))
    }

    fn sighting(&self, shard: u16) -> Option<&Sighting> {
        let name = self.config.shard(shard).name;
        self.seen.get(&name).or_else(|| self.gone.get(&name))
    }

    /// The shards and their holders.
    fn holders(&self, now: Timestamp) -> Vec<Held<'_>> {
        let shards = 0..self.config.shards.get();
        let holder = |index| self.sighting(index).and_then(|seen| holder(seen, now));
        shards.map(|index| (index, holder(index))).collect()
    }
}

/// A shard, and its holder if it has one.
type Held<'a> = (u16, Option<&'a str>);

/// The number of shards for each agent. If the shards do not divide evenly, the agents with the most keep one more.
fn targets<'a>(members: &BTreeSet<&'a str>, holders: &[Held<'_>]) -> BTreeMap<&'a str, usize> {
    let mut by_count: Vec<&str> = members.iter().copied().collect();
    by_count.sort_by_key(|member| (Reverse(count_of(holders, member)), *member));
    let (least, more) = (holders.len() / members.len(), holders.len() % members.len());
    let targets = by_count.into_iter().enumerate();
    targets
        .map(|(rank, member)| (member, least + usize::from(rank < more)))
        .collect()
}

fn count_of(holders: &[Held<'_>], member: &str) -> usize {
    let own = holders.iter().filter(|(_, it)| *it == Some(member));
    own.count()
}

/// The holder of a Lease; an empty name if nobody knows the holder, after the version of the Lease went back.
fn holder(seen: &Sighting, now: Timestamp) -> Option<&str> {
    let holder = Some(seen.record.holder.as_str());
    let holder = holder.filter(|it| !it.is_empty() && now < seen.until());
    holder.or_else(|| seen.is_unknown(now).then_some(""))
}

#[cfg(test)]
mod tests;
