//! What must hold after each step, and when everything has come to rest.

use std::{collections::BTreeMap, time::Duration};

use agent_core::api::CreatePod;
use agent_fake::Kind;

use super::state::{Mutant, World};

impl World {
    /// Checks that no two agents may write in a namespace.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(format!("{broken} at {}", self.now()));
        }
        let mut writers: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, served) in self.agents.iter().filter(|(id, _)| self.may_write(**id)) {
            for namespace in &served.namespaces {
                if let Some(other) = writers.insert(namespace, *id) {
                    return Err(format!(
                        "agents {other} and {id} may write in {namespace} at {}",
                        self.now()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether an agent holds the Leases that its calls need.
    pub(super) fn may_write(&self, agent: u64) -> bool {
        self.create_time(agent).is_some()
    }

    /// Returns how long its Leases allow a create of an agent to take; `None` where they do not last.
    pub(super) fn create_time(&self, agent: u64) -> Option<Duration> {
        let served = self.agents.get(&agent)?;
        let process = self.processes.get(&served.life)?;
        let shard = process.wanted.get(&served.shard)?.held.as_ref();
        let base = (!self.is_mutant(Mutant::IgnoreLayout)).then_some(&process.base);
        let mut time = Duration::MAX;
        for held in shard.into_iter().chain(base) {
            let left = held.lease.lead(self.now())?.creates_until;
            let left = left.duration_since(self.now());
            time = time.min(Duration::try_from(left).unwrap_or_default());
        }
        Some(time)
    }

    /// Checks that a create takes effect while no other agent may write there.
    pub(super) fn check_create(&mut self, agent: u64, create: &CreatePod) {
        let others = self.agents.iter();
        let mut others = others.filter(|(id, it)| {
            **id != agent && it.namespaces.contains(&create.namespace) && self.may_write(**id)
        });
        if let Some((other, _)) = others.next() {
            self.broken = Some(format!(
                "a create of agent {agent} takes effect in {} while agent {other} may write there",
                create.namespace
            ));
        }
    }

    /// Counts a pod that was created.
    pub(super) fn note_created(&mut self, namespace: &str) {
        let created = self.created.entry(namespace.to_owned()).or_default();
        *created += 1;
        if *created > self.wanted[namespace] {
            let wanted = self.wanted[namespace];
            self.broken = Some(format!(
                "{created} pods are created of {wanted} in {namespace}"
            ));
        }
    }

    /// Returns why the world is not yet as wanted: all pods are there, and processes serve shards evenly.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        for (namespace, wanted) in &self.wanted {
            let pods = self.cluster.objects(Kind::Pod);
            let there = pods.filter(|pod| pod["metadata"]["namespace"] == namespace.as_str());
            let there = there.count();
            if there != *wanted {
                return Some(format!("{there} pods of {wanted} are in {namespace}"));
            }
        }
        let counts = self.shard_counts();
        let (least, most) = (counts.values().min()?, counts.values().max()?);
        if most - least > 1 {
            return Some(format!("shards are spread unevenly: {counts:?}"));
        }
        let shards = self.processes.values().find_map(|it| it.shards);
        let all = shards.map_or(1, |it| usize::from(it.get()));
        let served: usize = counts.values().sum();
        (served != all).then(|| format!("{served} shards of {all} are served: {counts:?}"))
    }

    /// Returns how many shards each process serves.
    #[must_use]
    pub fn shard_counts(&self) -> BTreeMap<u64, usize> {
        let count = |life: &u64| {
            let agents = self.agents.iter().filter(|(_, it)| it.life == *life);
            agents.filter(|(id, _)| self.may_write(**id)).count()
        };
        let lives = self.processes.keys();
        lives.map(|life| (*life, count(life))).collect()
    }
}
