//! The acts of people and nodes on the cluster.

use std::time::Duration;

use agent_fake::{DeleteOptions, Kind, Object};
use serde_json::json;

use super::{happening::Happening, state::World};
use crate::{
    builders::pod,
    invariants::name,
    workloads::{Act, NAMESPACE},
};

/// A taint that announces evictions by default.
pub const LEAVING_TAINT: &str = "karpenter.sh/disrupted";
/// The maximum number of attempts of an act to find its pod.
const TRIES_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

impl World {
    pub(super) fn act(&mut self, act: Act, tries: u32) {
        let done = match &act {
            Act::Create(object) => self.cluster.create(object.clone()).is_ok(),
            Act::Scale { set, replicas } => self.cluster.scale(NAMESPACE, set, *replicas).is_ok(),
            Act::Patch { set, patch } => {
                if patch["metadata"]["annotations"].is_object() {
                    self.ledger.creates_paid.note_resumed(self.now());
                }
                let patched = self.cluster.patch(Kind::ReplicaSet, NAMESPACE, set, patch);
                patched.is_ok()
            }
            Act::Delete { set, propagation } => {
                let options = DeleteOptions {
                    propagation: *propagation,
                    ..DeleteOptions::default()
                };
                self.cluster
                    .delete(Kind::ReplicaSet, NAMESPACE, set, &options)
                    .is_ok()
            }
            Act::KillPod => {
                self.hit(|world, name| world.cluster.remove_pod_now(NAMESPACE, name).is_ok())
            }
            Act::DeletePod => self.hit(|world, name| {
                world
                    .cluster
                    .delete(Kind::Pod, NAMESPACE, name, &DeleteOptions::default())
                    .is_ok()
            }),
            Act::FailPod => self.hit(|world, name| {
                let failed = json!({"phase": "Failed"});
                world
                    .cluster
                    .set_pod_status(NAMESPACE, name, &failed)
                    .is_ok()
            }),
            Act::Relabel { value } => self.hit(|world, name| {
                let patch = json!({"metadata": {"labels": {"app": value}}});
                world
                    .cluster
                    .patch(Kind::Pod, NAMESPACE, name, &patch)
                    .is_ok()
            }),
            Act::ReplacePod => self.hit(|world, name| {
                let other = pod(name).labelled("app", "other").build();
                world.cluster.remove_pod_now(NAMESPACE, name).is_ok()
                    && world.cluster.create(other).is_ok()
            }),
            Act::FailNode => self.fail_busiest_node(),
            Act::ChangeNode { cordoned, leaving } => {
                let names = self.node_names();
                let name = self.rng.pick(&names).clone();
                self.change_node(&name, *cordoned, *leaving)
            }
            Act::FreeNodes => {
                let names = self.node_names().into_iter();
                names.fold(true, |_, name| self.change_node(&name, false, false))
            }
        };
        self.note_wanted();
        if !done && tries < TRIES_MAX {
            self.schedule.after(
                PAUSE,
                Happening::Act {
                    act,
                    tries: tries + 1,
                },
            );
        }
    }

    fn node_names(&self) -> Vec<String> {
        let names = self.cluster.objects(Kind::Node).map(name);
        names.map(str::to_owned).collect()
    }

    fn change_node(&mut self, name: &str, cordoned: bool, leaving: bool) -> bool {
        let taints = json!([{"key": LEAVING_TAINT, "effect": "NoSchedule"}]);
        let spec =
            json!({"unschedulable": cordoned.then_some(true), "taints": leaving.then_some(taints)});
        let patched = self
            .cluster
            .patch(Kind::Node, "", name, &json!({"spec": spec}));
        patched.is_ok()
    }

    /// Applies an act to one of the pods of a ReplicaSet.
    fn hit(&mut self, how: impl FnOnce(&mut Self, &str) -> bool) -> bool {
        let owned = self
            .cluster
            .objects(Kind::Pod)
            .filter(|pod| is_hittable(pod));
        let owned: Vec<_> = owned.cloned().collect();
        if owned.is_empty() {
            return false;
        }
        let pod = self.rng.pick(&owned).clone();
        let text = |field: &str| {
            pod["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        self.ledger.touched.insert(text("uid"));
        how(self, &text("name"))
    }

    fn fail_busiest_node(&mut self) -> bool {
        let owned = self
            .cluster
            .objects(Kind::Pod)
            .filter(|pod| is_hittable(pod));
        let nodes = owned.filter_map(|pod| pod["spec"]["nodeName"].as_str());
        let node = nodes.max().map(str::to_owned);
        self.ledger.lost_node |= node.is_some();
        node.is_some_and(|node| self.cluster.fail_node(&node).is_ok())
    }
}

fn is_hittable(pod: &Object) -> bool {
    let owned = pod["metadata"]["ownerReferences"].is_array();
    let ended = matches!(
        pod["status"]["phase"].as_str(),
        Some("Failed" | "Succeeded")
    );
    owned && !ended && pod["metadata"]["deletionTimestamp"].is_null()
}
