//! Resource quotas that count objects: pods that have not ended, and objects of a kind.

use serde_json::{Value, json};

use crate::{Cluster, error::ApiError, kind::Kind, object};

/// The names under which quotas count.
const COUNTED: [&str; 3] = ["pods", "count/pods", "count/replicasets.apps"];

impl Cluster {
    /// Refuses what would exceed a quota of its namespace, in Kubernetes' words.
    pub(crate) fn check_quota(&self, kind: Kind, new: &Value) -> Result<(), ApiError> {
        let namespace = object::namespace(new);
        for quota in self.store.in_namespace(Kind::ResourceQuota, namespace) {
            let exceeded: Vec<_> = COUNTED
                .into_iter()
                .filter(|counted| counts(counted, kind))
                .filter_map(|counted| {
                    let hard = hard(quota, counted)?;
                    let used = self.used(namespace, counted);
                    (used.saturating_add(1) > hard).then_some((counted, used, hard))
                })
                .collect();
            if !exceeded.is_empty() {
                let list = |format: fn(&(&str, u64, u64)) -> String| {
                    exceeded.iter().map(format).collect::<Vec<_>>().join(",")
                };
                let why = format!(
                    "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                    object::name(quota),
                    list(|(counted, _, _)| format!("{counted}=1")),
                    list(|(counted, used, _)| format!("{counted}={used}")),
                    list(|(counted, _, hard)| format!("{counted}={hard}")),
                );
                return Err(ApiError::forbidden(kind, object::name(new), why));
            }
        }
        Ok(())
    }

    /// Writes what is used into the quotas of a namespace.
    pub(crate) fn refresh_quotas(&mut self, namespace: &str) {
        let quotas: Vec<_> = self
            .store
            .in_namespace(Kind::ResourceQuota, namespace)
            .cloned()
            .collect();
        for quota in quotas {
            let mut used = json!({});
            for counted in COUNTED {
                if hard(&quota, counted).is_some() {
                    used[counted] = self.used(namespace, counted).to_string().into();
                }
            }
            let mut new = Value::clone(&quota);
            new["status"] = json!({"hard": quota["spec"]["hard"], "used": used});
            self.change(Kind::ResourceQuota, &quota, new);
        }
    }

    /// Returns whether a namespace has a quota at all.
    pub(crate) fn has_quota(&self, namespace: &str) -> bool {
        let mut quotas = self.store.in_namespace(Kind::ResourceQuota, namespace);
        quotas.next().is_some()
    }

    fn used(&self, namespace: &str, counted: &str) -> u64 {
        let used = match counted {
            "pods" => self.store.count_unended_pods(namespace),
            "count/pods" => self.store.in_namespace(Kind::Pod, namespace).count(),
            _ => self.store.in_namespace(Kind::ReplicaSet, namespace).count(),
        };
        used as u64
    }
}

fn counts(counted: &str, kind: Kind) -> bool {
    match kind {
        Kind::Pod => matches!(counted, "pods" | "count/pods"),
        Kind::ReplicaSet => counted == "count/replicasets.apps",
        Kind::Namespace | Kind::ResourceQuota | Kind::Node => false,
    }
}

/// Reads a limit, written as text or as a number.
fn hard(quota: &Value, counted: &str) -> Option<u64> {
    let limit = &quota["spec"]["hard"][counted];
    limit.as_u64().or_else(|| limit.as_str()?.parse().ok())
}
