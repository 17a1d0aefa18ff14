//! Another controller beside the agent, which does not know the agent, like an active built-in controller.

use std::cmp::Reverse;

use agent_fake::{DeleteOptions, Kind, Object};
use serde_json::{Value, json};

use crate::{builders::pod, invariants::replicas, workloads::NAMESPACE, world::World};

/// The annotation of pods with a deletion cost.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation that marks this cost as advice.
pub const ADVISED_COST: &str = "decree.dev/advised-cost";

/// A controller of one ReplicaSet. It creates missing pods in growing rounds, and deletes surplus pods: those with the lowest deletion cost
/// first, as upstream does with pods that differ in nothing else. Every other pod is busy, as its label says.
#[derive(Debug)]
pub struct OtherController {
    set: &'static str,
    made: usize,
    round: u32,
}

impl OtherController {
    /// Returns a controller of the ReplicaSet of this name, whose pods have its name as the label `app`.
    pub const fn new(set: &'static str) -> Self {
        Self {
            set,
            made: 0,
            round: 0,
        }
    }

    /// Reconciles the ReplicaSet once.
    pub fn look(&mut self, world: &mut World) {
        let set = world.cluster.peek(Kind::ReplicaSet, NAMESPACE, self.set);
        let Some(set) = set.cloned() else { return };
        let wanted = set["spec"]["replicas"].as_u64().unwrap_or_default();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let uid = set["metadata"]["uid"].as_str().unwrap_or_default();
        let there = replicas(world, uid).map(|pod| (cost(pod), name(pod)));
        let mut there: Vec<_> = there.collect();
        there.sort_by_key(|(cost, _)| Reverse(*cost));
        let missing = wanted.saturating_sub(there.len());
        self.round = if missing == 0 { 0 } else { self.round + 1 };
        for _ in 0..missing.min(1 << self.round.min(10) >> 1) {
            self.make(world, &set);
        }
        for (_, name) in there.iter().skip(wanted) {
            // The agent may have deleted it meanwhile.
            let options = DeleteOptions::default();
            drop(world.cluster.delete(Kind::Pod, NAMESPACE, name, &options));
        }
    }

    fn make(&mut self, world: &mut World, set: &Value) {
        self.made += 1;
        let name = format!("{}-other{}", self.set, self.made);
        let state = ["idle", "busy"][self.made % 2];
        let pod = pod(&name).labelled("app", self.set).owned_by(set);
        let pod = pod.labelled("state", state);
        let mut pod = pod.build();
        pod["metadata"]["managedFields"] = json!([{"manager": "kube-controller-manager"}]);
        world.cluster.create(pod).expect("it is valid");
    }
}

fn cost(pod: &Object) -> i32 {
    let cost = pod["metadata"]["annotations"][DELETION_COST].as_str();
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn name(pod: &Object) -> String {
    let name = pod["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}
