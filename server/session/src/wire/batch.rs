//! Batches, from the core to the contract.

use std::sync::Arc;

use decree_api::v1;
use decree_core::{
    Action, Advice, Batch, Condition, CostsWanted, Key, PodRef, ResourceVersion, Status, Victim,
};

use super::{
    field,
    object::object_ref,
    reason::{reason, reasons},
};

/// Writes a batch under the guard of its session.
pub(crate) fn batch(batch: Batch, guard: &v1::Guard) -> v1::Batch {
    let Batch {
        id,
        key,
        generation,
        replica_set_version,
        pods_version,
        action,
        reasons: why,
    } = batch;
    v1::Batch {
        id: id.0,
        replica_set: Some(key_ref(&key)),
        generation,
        replica_set_version: version(replica_set_version),
        pods_version: version(pods_version),
        guard: Some(guard.clone()),
        action: Some(self::action(&key.namespace, action)),
        reasons: reasons(why),
        traceparent: String::new(),
    }
}

/// Writes a question for the costs of pods.
pub(crate) fn question(question: CostsWanted) -> v1::CostsWanted {
    let CostsWanted {
        id,
        key,
        pods,
        timeout,
    } = question;
    v1::CostsWanted {
        id,
        replica_set: Some(key_ref(&key)),
        pods: pod_refs(&key.namespace, &pods),
        timeout: Some(field::duration(timeout)),
    }
}

/// Writes a victim, a pod of `namespace`.
pub fn victim(namespace: &Arc<str>, victim: Victim) -> v1::Victim {
    let Victim {
        pod,
        version,
        reason: why,
    } = victim;
    v1::Victim {
        pod: Some(pod_ref(namespace, &pod)),
        resource_version: self::version(version),
        reason: Some(reason(why)),
    }
}

/// Writes a status.
pub fn status(status: Status) -> v1::ReplicaSetStatus {
    let Status {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions,
    } = status;
    v1::ReplicaSetStatus {
        replicas,
        fully_labeled_replicas,
        ready_replicas,
        available_replicas,
        terminating_replicas,
        observed_generation,
        conditions: conditions.into_iter().map(condition).collect(),
    }
}

pub(crate) fn key_ref(key: &Key) -> v1::ObjectRef {
    object_ref(&key.namespace, &key.name, &key.uid.0)
}

pub(crate) fn pod_refs(namespace: &Arc<str>, pods: &[PodRef]) -> Vec<v1::ObjectRef> {
    pods.iter().map(|pod| pod_ref(namespace, pod)).collect()
}

pub(crate) fn version(version: Option<ResourceVersion>) -> String {
    version.map_or_else(String::new, |version| version.to_string())
}

fn action(namespace: &Arc<str>, action: Action) -> v1::batch::Action {
    match action {
        Action::Create {
            names,
            generate_name,
            slow_start_initial,
        } => v1::batch::Action::Create(v1::Create {
            names: names.iter().map(ToString::to_string).collect(),
            generate_name: generate_name.to_string(),
            slow_start_initial: field::int32(slow_start_initial),
        }),
        Action::Delete(victims) => {
            let victims = victims.into_iter();
            v1::batch::Action::Delete(v1::Delete {
                victims: victims.map(|it| victim(namespace, it)).collect(),
            })
        }
        Action::Claim { adopts, releases } => v1::batch::Action::Claim(v1::Claim {
            adopts: pod_refs(namespace, &adopts),
            releases: pod_refs(namespace, &releases),
        }),
        Action::WriteStatus(written) => v1::batch::Action::WriteStatus(v1::WriteStatus {
            status: Some(status(*written)),
        }),
        Action::Advise(advices) => {
            let advices = advices.into_iter().map(|Advice { pod, cost }| v1::Advice {
                pod: Some(pod_ref(namespace, &pod)),
                cost,
            });
            v1::batch::Action::Advise(v1::Advise {
                advices: advices.collect(),
            })
        }
    }
}

fn pod_ref(namespace: &Arc<str>, PodRef { name, uid }: &PodRef) -> v1::ObjectRef {
    object_ref(namespace, name, &uid.to_string())
}

fn condition(condition: Condition) -> v1::ReplicaSetCondition {
    let Condition {
        kind,
        status,
        last_transition,
        reason,
        message,
    } = condition;
    v1::ReplicaSetCondition {
        r#type: kind,
        status,
        last_transition_time: last_transition.map(field::time),
        reason,
        message,
    }
}
