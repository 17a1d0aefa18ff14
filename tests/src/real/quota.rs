//! A quota of pods, with the status that its controller would write: the API servers of tests have no quota controller.

use serde_json::json;

use super::namespace::Namespace;

const NAME: &str = "few";

impl Namespace {
    /// Limits the namespace to this number of pods.
    ///
    /// # Panics
    /// If the namespace has this quota or pods already.
    pub async fn allow_pods(&self, pods: u32) {
        let hard = json!({"pods": pods.to_string()});
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": NAME}, "spec": {"hard": hard},
        });
        let quotas = self.path("/api/v1", "resourcequotas", "");
        let created = self.create(&quotas, &quota).await;
        let mut created = created.expect("it is valid");
        created["status"] = json!({"hard": hard, "used": {"pods": "0"}});
        let status = format!("{quotas}/{NAME}/status");
        let replaced = self.replace(&status, &created).await;
        replaced.expect("no other controller runs");
    }

    /// Raises the quota.
    ///
    /// # Panics
    /// If the namespace has no quota.
    pub async fn raise_quota(&self, pods: u32) {
        let raised = json!({"pods": pods.to_string()});
        let quota = self.path("/api/v1", "resourcequotas", NAME);
        let status = format!("{quota}/status");
        let spec = (quota, json!({"spec": {"hard": raised}}));
        for (path, patch) in [spec, (status, json!({"status": {"hard": raised}}))] {
            self.change(&path, &patch).await;
        }
    }
}
