//! Resource quotas for the number of pods that have not ended.

use serde_json::Value;

use crate::{error::ApiError, kind::Kind, object, store::Store};

/// Refuses a pod that would exceed a quota of its namespace, with Kubernetes' message.
pub(crate) fn check(store: &Store, kind: Kind, new: &Value) -> Result<(), ApiError> {
    if kind != Kind::Pod {
        return Ok(());
    }
    let used = store.count_unended_pods(object::namespace(new)) as u64;
    for quota in store.in_namespace(Kind::ResourceQuota, object::namespace(new)) {
        if let Some(hard) = hard(quota).filter(|hard| used >= *hard) {
            let why = format!(
                "exceeded quota: {}, requested: pods=1, used: pods={used}, limited: pods={hard}",
                object::name(quota),
            );
            return Err(ApiError::forbidden(kind, object::name(new), why));
        }
    }
    Ok(())
}

/// A limit may be a text or a number.
fn hard(quota: &Value) -> Option<u64> {
    let limit = &quota["spec"]["hard"]["pods"];
    limit.as_u64().or_else(|| limit.as_str()?.parse().ok())
}
