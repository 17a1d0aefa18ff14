//! Another controller beside the agent, which does not know the agent, like an active built-in controller.

use agent_fake::{DeleteOptions, Kind, Object};
use serde_json::{Value, json};

use crate::{builders::pod, invariants::replicas, workloads::NAMESPACE, world::World};

/// A controller of one ReplicaSet. It creates missing pods in growing rounds, and deletes surplus pods.
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
        let there: Vec<_> = replicas(world, uid).map(name).collect();
        let missing = wanted.saturating_sub(there.len());
        self.round = if missing == 0 { 0 } else { self.round + 1 };
        for _ in 0..missing.min(1 << self.round.min(10) >> 1) {
            self.make(world, &set);
        }
        for name in there.iter().skip(wanted) {
            // The agent may have deleted it meanwhile.
            let options = DeleteOptions::default();
            drop(world.cluster.delete(Kind::Pod, NAMESPACE, name, &options));
        }
    }

    fn make(&mut self, world: &mut World, set: &Value) {
        self.made += 1;
        let name = format!("{}-other{}", self.set, self.made);
        let pod = pod(&name).labelled("app", self.set).owned_by(set);
        let mut pod = pod.build();
        pod["metadata"]["managedFields"] = json!([{"manager": "kube-controller-manager"}]);
        world.cluster.create(pod).expect("it is valid");
    }
}

fn name(pod: &Object) -> String {
    let name = pod["metadata"]["name"].as_str();
    name.unwrap_or_default().to_owned()
}
