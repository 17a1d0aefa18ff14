//! Resource quotas for numbers of objects: pods that have not ended, and objects of a kind.

use serde_json::{Map, Value, json};

use crate::{
    error::ApiError,
    kind::Kind,
    object::{self, Object},
    store::Store,
};

/// The resource names that quotas count, and the kind of each.
const COUNTED: [(&str, Kind); 3] = [
    (UNENDED_PODS, Kind::Pod),
    ("count/pods", Kind::Pod),
    ("count/replicasets.apps", Kind::ReplicaSet),
];
const UNENDED_PODS: &str = "pods";

/// Refuses an object that would exceed a quota of its namespace, with Kubernetes' message.
pub(crate) fn check(store: &Store, kind: Kind, new: &Value) -> Result<(), ApiError> {
    let namespace = object::namespace(new);
    for quota in store.in_namespace(Kind::ResourceQuota, namespace) {
        let exceeded: Vec<_> = COUNTED
            .into_iter()
            .filter(|(_, counts)| *counts == kind)
            .filter_map(|(counted, _)| {
                let hard = hard(quota, counted)?;
                let used = used(store, namespace, counted, kind);
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

/// The quotas of a namespace, each with its new state after a recount.
pub(crate) fn refreshed(store: &Store, namespace: &str) -> Vec<(Object, Value)> {
    let quotas = store.in_namespace(Kind::ResourceQuota, namespace);
    let refreshed = quotas.map(|quota| {
        let counted = COUNTED.into_iter();
        let counted = counted.filter(|(counted, _)| hard(quota, counted).is_some());
        let used = counted.map(|(counted, kind)| {
            let used = used(store, namespace, counted, kind).to_string();
            (counted.to_owned(), used.into())
        });
        let used: Map<_, _> = used.collect();
        let mut new = Value::clone(quota);
        new["status"] = json!({"hard": quota["spec"]["hard"], "used": used});
        (quota.clone(), new)
    });
    refreshed.collect()
}

fn used(store: &Store, namespace: &str, counted: &str, kind: Kind) -> u64 {
    let used = match counted {
        UNENDED_PODS => store.count_unended_pods(namespace),
        _ => store.in_namespace(kind, namespace).count(),
    };
    used as u64
}

/// A limit may be a text or a number.
fn hard(quota: &Value, counted: &str) -> Option<u64> {
    let limit = &quota["spec"]["hard"][counted];
    limit.as_u64().or_else(|| limit.as_str()?.parse().ok())
}
