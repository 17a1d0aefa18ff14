//! The checks after each step, and at rest.

use std::collections::BTreeMap;

use agent_core::lease::Lease;
use agent_fake::Kind;

use super::state::{Mutant, Shared};
use crate::facts::Fact;

impl Shared {
    /// Checks the effects since the last check, and that no two agents may write in a namespace.
    pub(super) fn check(&mut self) -> Result<(), String> {
        let facts = std::mem::take(&mut self.world.facts);
        let now = self.now();
        for fact in &facts {
            let judged = self.judge(fact);
            judged.map_err(|why| format!("{why} at {now}"))?;
        }
        let mut writers: BTreeMap<&str, u64> = BTreeMap::new();
        for (life, actor) in &self.world.agents {
            let namespaces = actor.part.iter().flat_map(|part| &part.namespaces);
            for namespace in namespaces.filter(|_| self.may_write(*life)) {
                if let Some(other) = writers.insert(namespace, *life) {
                    return Err(format!(
                        "agents {other} and {life} may write in {namespace} at {now}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, fact: &Fact) -> Result<(), String> {
        if let Fact::BatchSent { batch, verdict, .. } = fact {
            verdict
                .as_ref()
                .map_err(|why| format!("batch {} is wrong: {why}", batch.id))?;
        }
        if let Fact::ProtocolBroken(why) = fact {
            return Err(format!("the protocol is broken: {why}"));
        }
        if matches!(fact, Fact::PodDeleted { .. }) {
            return Err("a pod is deleted, and none is surplus".to_owned());
        }
        if let Fact::PodCreated { cause, pod } = fact {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
            self.judge_create(self.world.life_of(&cause.session), namespace)?;
        }
        Ok(())
    }

    /// Checks that a create takes effect while no other agent may write there, and that its pod is desired.
    fn judge_create(&mut self, by: Option<u64>, namespace: &str) -> Result<(), String> {
        for (life, actor) in &self.world.agents {
            let mut parts = actor.part.iter();
            let is_there = parts.any(|part| part.namespaces.contains(namespace));
            if is_there && Some(*life) != by && self.may_write(*life) {
                return Err(format!(
                    "a create of agent {by:?} takes effect in {namespace} while agent {life} may write there"
                ));
            }
        }
        let created = self.created.entry(namespace.to_owned()).or_default();
        *created += 1;
        let wanted = self.wanted[namespace];
        if *created > wanted {
            Err(format!(
                "{created} pods are created of {wanted} in {namespace}"
            ))
        } else {
            Ok(())
        }
    }

    /// Whether an agent holds the Leases for its calls.
    pub(super) fn may_write(&self, life: u64) -> bool {
        let part = self.world.agents.get(&life).and_then(|it| it.part.as_ref());
        part.is_some_and(|part| part.create_time(self.now()).is_some())
    }

    /// Gives the agents the current Leases.
    pub(super) fn lend_leases(&mut self) {
        for (life, (process, shard)) in &self.agents {
            let leases = self.leases_of(*process, *shard);
            if let Some(part) = self
                .world
                .agents
                .get_mut(life)
                .and_then(|it| it.part.as_mut())
            {
                part.leases = leases;
            }
        }
    }

    fn leases_of(&self, process: u64, shard: u16) -> Option<Vec<Lease>> {
        let process = self.processes.get(&process)?;
        let held = process.wanted.get(&shard)?.held.as_ref();
        let base = (!self.is_mutant(Mutant::IgnoreLayout)).then_some(&process.base);
        let leases = held.into_iter().chain(base);
        Some(leases.map(|it| it.lease.clone()).collect())
    }

    /// Returns the difference from the desired state: all pods exist, and processes serve shards evenly.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        for (namespace, wanted) in &self.wanted {
            let pods = self.world.cluster.objects(Kind::Pod);
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

    /// Returns the number of shards that each process serves.
    #[must_use]
    pub fn shard_counts(&self) -> BTreeMap<u64, usize> {
        let count = |life: &u64| {
            let agents = self.agents.iter().filter(|(_, it)| it.0 == *life);
            agents.filter(|(id, _)| self.may_write(**id)).count()
        };
        let lives = self.processes.keys();
        lives.map(|life| (*life, count(life))).collect()
    }
}
