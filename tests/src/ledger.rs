//! The decisions, writes and effects so far, so that each effect can be traced to its decision.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::api::{CallId, CreatePod, Request};
use decree_api::v1::{self, batch::Action};
use serde_json::Value;

use crate::{actors::session_id, facts::Cause, paid::Creates};

/// The account of one world.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The newest decision on each target for an agent, by the life of the agent.
    decisions: BTreeMap<(u64, Target), Cause>,
    /// The creates in flight, by the life of the agent and the call.
    pub(crate) creates_out: BTreeMap<(u64, CallId), (String, u64)>,
    /// The creates of each batch: begun and answered.
    creates: BTreeMap<(String, u64), (usize, usize)>,
    /// How often each create took effect.
    pub created: BTreeMap<Cause, u32>,
    /// The pods that the agents created, with the ReplicaSet and the generation of the decision.
    pub ours: BTreeMap<String, Cause>,
    /// The uids of the pods that the agents deleted.
    pub deleted: BTreeSet<String>,
    /// The number of adopted orphans.
    pub adopted: usize,
    /// The number of pods created under a name.
    names: BTreeMap<String, u32>,
    /// The names of creates that had an unknown effect for a while, which agents retry.
    unknown: BTreeSet<String>,
    /// Pods that a user has changed.
    pub touched: BTreeSet<String>,
    /// The desired replicas of each ReplicaSet, by generation.
    pub wanted: BTreeMap<String, BTreeMap<i64, i64>>,
    /// Whether the server may not know the outcome of a write: its agent died, gave up, or lost the reply.
    pub doubtful_writes: bool,
    /// The uids of the pods whose creator got no answer: it had given up or died, or the answer was lost.
    pub unannounced: BTreeSet<String>,
    /// Whether a node was lost with pods.
    pub lost_node: bool,
    /// The number of effective writes of the agents.
    pub writes: u64,
    /// The creates of each ReplicaSet, and what pays for them.
    pub creates_paid: Creates,
}

/// The target of a decision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// A new pod, by ReplicaSet and name.
    Create { set: String, name: String },
    /// A victim, by uid.
    Delete(String),
    /// A pod whose owner changes, by uid.
    Claim(String),
    /// The status of a ReplicaSet, by uid.
    Status(String),
}

impl Ledger {
    /// Notes an outgoing batch on a connection to the agent of a life.
    pub fn note_batch(&mut self, life: u64, connection: u64, batch: &v1::Batch) {
        let set = batch.replica_set.as_ref().map_or("", |set| &set.uid);
        for (operation, target) in targets(set, batch).into_iter().enumerate() {
            let cause = Cause {
                session: session_id(connection),
                batch: batch.id,
                operation,
                set: set.to_owned(),
                generation: batch.generation,
                creates: matches!(batch.action, Some(Action::Create(_))),
            };
            self.decisions.insert((life, target), cause);
        }
    }

    /// Returns the decision for a write of the agent of a life; `None` for a read.
    pub fn cause(&self, life: u64, request: &Request) -> Option<Cause> {
        let target = match request {
            Request::CreatePod(create) => Target::Create {
                set: create.controller.uid.clone(),
                name: create.name.clone(),
            },
            Request::DeletePod { pod, .. } => Target::Delete(pod.uid.clone()),
            Request::AdoptPod { pod, .. }
            | Request::ReleasePod { pod, .. }
            | Request::AdvisePod { pod, .. } => Target::Claim(pod.uid.clone()),
            Request::WriteStatus(write) => Target::Status(write.replica_set.uid.clone()),
            Request::ReadPod { .. } | Request::ReadReplicaSet { .. } => return None,
        };
        self.decisions.get(&(life, target)).cloned()
    }

    /// Notes an outgoing call of the agent; returns how many creates of its batch had begun, and how many were answered.
    pub fn note_call(&mut self, life: u64, id: CallId, cause: &Cause) -> (usize, usize) {
        if !cause.creates {
            return (0, 0);
        }
        let batch = (cause.session.clone(), cause.batch);
        let counts = self.creates.entry(batch.clone()).or_default();
        let before = *counts;
        counts.0 += 1;
        self.creates_out.insert((life, id), batch);
        before
    }

    /// Notes that the create of a pod has an unknown effect for the agent.
    pub fn note_unknown(&mut self, create: &CreatePod) {
        self.unknown.insert(create.name.clone());
    }

    /// Notes the name of a created pod.
    pub fn note_name(&mut self, pod: &Value) {
        let uses = self.names.entry(text(&pod["metadata"]["name"]));
        *uses.or_default() += 1;
    }

    /// Returns the number of pods created under a name.
    pub fn name_uses(&self, name: &str) -> u32 {
        self.names.get(name).copied().unwrap_or(0)
    }

    /// Returns whether a create under this name had an unknown effect for a while.
    pub fn was_unknown(&self, name: &str) -> bool {
        self.unknown.contains(name)
    }

    /// Notes that a call was answered.
    pub fn note_reply(&mut self, life: u64, id: CallId) {
        if let Some(batch) = self.creates_out.remove(&(life, id)) {
            self.creates.entry(batch).or_default().1 += 1;
        }
    }

    /// Notes the desired replicas of a ReplicaSet.
    pub fn note_wanted(&mut self, set: &Value) {
        let generation = set["metadata"]["generation"].as_i64().unwrap_or(0);
        let replicas = set["spec"]["replicas"].as_i64().unwrap_or(1);
        let wanted = self
            .wanted
            .entry(text(&set["metadata"]["uid"]))
            .or_default();
        wanted.insert(generation, replicas);
    }

    /// Returns the minimum and the maximum desired replicas of a ReplicaSet since a generation.
    pub fn wanted_since(&self, set: &str, generation: i64) -> (i64, i64) {
        let wanted = self.wanted.get(set);
        let since = || {
            wanted
                .into_iter()
                .flat_map(|wanted| wanted.range(generation..))
        };
        let replicas = || since().map(|(_, replicas)| *replicas);
        (replicas().min().unwrap_or(0), replicas().max().unwrap_or(0))
    }
}

/// The target of each operation of a batch for the ReplicaSet `set`.
fn targets(set: &str, batch: &v1::Batch) -> Vec<Target> {
    let create = |name: &String| Target::Create {
        set: set.to_owned(),
        name: name.clone(),
    };
    let uid = |pod: Option<&v1::ObjectRef>| pod.map(|pod| pod.uid.clone()).unwrap_or_default();
    match &batch.action {
        Some(Action::Create(it)) => it.names.iter().map(create).collect(),
        Some(Action::Delete(it)) => {
            let victims = it.victims.iter();
            victims
                .map(|victim| Target::Delete(uid(victim.pod.as_ref())))
                .collect()
        }
        Some(Action::Claim(it)) => {
            let pods = it.adopts.iter().chain(&it.releases);
            pods.map(|pod| Target::Claim(uid(Some(pod)))).collect()
        }
        Some(Action::Advise(it)) => {
            let pods = it.advices.iter().map(|advice| uid(advice.pod.as_ref()));
            pods.map(Target::Claim).collect()
        }
        Some(Action::WriteStatus(_)) => vec![Target::Status(set.to_owned())],
        None => Vec::new(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
