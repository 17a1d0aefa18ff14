//! The fates of new pods: a webhook drops their labels, a kubelet rejects them, somebody removes them.

use agent_fake::Object;
use serde_json::Value;

use super::state::World;
use crate::workloads::NAMESPACE;

impl World {
    /// Lets webhooks change a pod before its creation.
    pub(super) fn relabel_new(&mut self, pod: &mut Value) {
        if self.befalls(self.chaos.relabel) {
            pod["metadata"]["labels"] = Value::Null;
        }
        if self.befalls(self.chaos.orphan) {
            pod["metadata"]["ownerReferences"] = Value::Null;
        }
    }

    /// Ends a pod that was just created.
    pub(super) fn spoil_new(&mut self, pod: &Object) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if self.befalls(self.chaos.reject) {
            let failed = self.cluster.fail_pod(NAMESPACE, name, "Rejected");
            failed.expect("it is there");
        } else if self.befalls(self.chaos.remove) {
            let removed = self.cluster.remove_pod_now(NAMESPACE, name);
            removed.expect("it is there");
        }
    }

    /// Draws nothing if the chance is zero, so that worlds without the fate do not change.
    pub(super) fn befalls(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.rng.chance(per_mille)
    }
}
