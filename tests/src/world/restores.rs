//! The restore of the store from a backup: versions fall, and later changes are lost.

use std::time::Duration;

use agent_core::{api, watch::List};
use agent_fake::{Kind, OpenWatches};
use decree_agent::cluster::fake::calls;
use serde_json::{Value, json};

use super::{
    happening::Happening,
    state::{Lost, World},
};
use crate::{
    actors::AgentActor,
    builders::replica_set,
    chaos::Fault,
    facts::Fact,
    workloads::{BYSTANDER, NAMESPACE},
};

/// The name of a ReplicaSet whose selector does not match the labels of its template.
pub const ILL_SET: &str = "ill";

impl World {
    /// Writes to unrelated objects `times` times.
    pub(super) fn write_often(&mut self, times: u32) {
        for _ in 0..times {
            let version = self.cluster.version().to_string();
            let patch = json!({"metadata": {"annotations": {"written-at": version}}});
            let written = self.cluster.patch(Kind::Pod, NAMESPACE, BYSTANDER, &patch);
            written.expect("the bystander is there");
        }
    }

    pub(super) fn take_backup(&mut self) {
        self.past.backup = Some(Box::new(self.cluster.clone()));
    }

    /// Restores the store. The API servers are stopped meanwhile, and lose their history.
    pub(super) fn put_back(&mut self, open: OpenWatches, behind: Duration) {
        let Some(backup) = &self.past.backup else {
            return;
        };
        let reached = self.cluster.version();
        let is_watching = |actor: &&AgentActor| actor.watches.iter().all(Option::is_some);
        let watching = self.agents.values().filter(is_watching);
        let watching = watching.map(|actor| actor.life).collect();
        self.past.newest = self.past.newest.max(reached);
        self.cluster.put_back(backup, open);
        self.caches.begin_anew(self.cluster.version());
        self.facts.push(Fact::PutBack {
            reached,
            creates: self.ledger.creates_out.len(),
            behind,
            watching,
        });
        self.note_wanted();
    }

    /// Restores the store behind an API server that keeps running for a while.
    pub(super) fn put_back_behind(&mut self, span: Duration) {
        let version = self.cluster.version();
        let lists = api::Kind::ALL.map(|kind| calls::list(&mut self.cluster, kind));
        let [Ok(sets), Ok(pods)] = lists else {
            return;
        };
        let lists = [sets, pods];
        self.past.lost = Some(Box::new(Lost { lists, version }));
        self.put_back(OpenWatches::Silent, span);
        let restart = Happening::Fault(Fault::RestartBehind);
        self.schedule.after(span, restart);
    }

    /// Restarts the API server that kept running.
    pub(super) fn restart_behind(&mut self) {
        self.past.lost = None;
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            self.cluster.drop_watches(kind);
        }
    }

    /// The list of an API server that keeps running during the restore of its store.
    pub(super) fn lost_list(&self, kind: api::Kind) -> Option<List> {
        let lost = self.past.lost.as_ref()?;
        Some(lost.lists[kind as usize].clone())
    }

    /// The highest version of all time.
    pub(super) fn newest_version(&self) -> u64 {
        self.past.newest.max(self.cluster.version())
    }

    /// A version above all earlier versions, if the store was restored.
    pub(super) const fn raise_version(&mut self, version: u64) -> u64 {
        if version > self.past.newest {
            return version;
        }
        self.past.newest += 1;
        self.past.newest
    }

    /// The version of the newest list of a kind.
    pub(super) fn listed_version(&self) -> u64 {
        let lost = self.past.lost.as_ref();
        lost.map_or_else(|| self.cluster.version(), |lost| lost.version)
    }

    /// Adds a ReplicaSet from a backup that the current API server would refuse.
    pub(super) fn add_ill_set(&mut self) {
        let set = replica_set(ILL_SET).replicas(0).build();
        let set = self.cluster.create(set).expect("nothing refuses it");
        let mut set = Value::clone(&set);
        set["spec"]["replicas"] = 3.into();
        set["spec"]["template"]["metadata"]["labels"] = json!({"app": "another"});
        self.cluster.replace_unchecked(set).expect("it is there");
        self.note_wanted();
    }

    pub(super) fn remove_ill_set(&mut self) {
        let options = agent_fake::DeleteOptions::default();
        let deleted = self
            .cluster
            .delete(Kind::ReplicaSet, NAMESPACE, ILL_SET, &options);
        // A restored store may not contain the ReplicaSet.
        drop(deleted);
    }
}
