//! Batches, from the core to the contract.

use std::sync::Arc;

use decree::v1;
use server_core::{Action, Batch, Condition, Key, PodRef, Reason, ResourceVersion, Status, Victim};

use super::{
    field,
    object::object_ref,
    reason::{reason, rule},
    writer::Writer,
};

/// A batch as it stands in a frame.
#[derive(Clone, Debug)]
pub(crate) struct EncodedBatch {
    pub(crate) bytes: Vec<u8>,
    /// Whether it has a place in a trace.
    pub(crate) is_traced: bool,
}

/// How many bytes a batch has, and each name and victim in it, as a rule.
const BATCH_BYTES: usize = 512;
const NAME_BYTES: usize = 32;
const VICTIM_BYTES: usize = 128;

/// Writes a batch under the guard of its session, with its place in a trace; empty where it has none.
#[must_use]
pub(crate) fn batch(batch: Batch, guard: &v1::Guard, traceparent: &str) -> EncodedBatch {
    let Batch {
        id,
        key,
        generation,
        replica_set_version,
        pods_version,
        action,
        reasons: why,
    } = batch;
    let mut bytes = Vec::with_capacity(expected_bytes(&action));
    let mut writer = Writer(&mut bytes);
    writer.number(1, id.0);
    writer.nested(2, |it| write_ref(it, &key.namespace, &key.name, &key.uid.0));
    writer.number(3, generation.cast_unsigned());
    writer.displayed(4, replica_set_version);
    writer.displayed(5, pods_version);
    writer.message(6, guard);
    write_action(&mut writer, &key.namespace, action);
    for reason in &why {
        writer.nested(11, |it| write_reason(it, reason));
    }
    writer.text(12, traceparent);
    EncodedBatch {
        bytes,
        is_traced: !traceparent.is_empty(),
    }
}

fn expected_bytes(action: &Action) -> usize {
    let operations = match action {
        Action::Create { names, .. } => names.len() * NAME_BYTES,
        Action::Delete(victims) => victims.len() * VICTIM_BYTES,
        Action::Claim { .. } | Action::WriteStatus(_) => 0,
    };
    BATCH_BYTES + operations
}

/// Writes a victim, a pod of `namespace`.
#[must_use]
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
#[must_use]
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

fn write_action(writer: &mut Writer<'_>, namespace: &Arc<str>, action: Action) {
    match action {
        Action::Create {
            names,
            generate_name,
            slow_start_initial,
        } => writer.nested(7, |it| {
            names.iter().for_each(|name| it.item(1, name));
            it.text(2, &generate_name);
            it.number(3, field::int32(slow_start_initial).unsigned_abs().into());
        }),
        Action::Delete(victims) => writer.nested(8, |it| {
            for victim in &victims {
                it.nested(1, |it| write_victim(it, namespace, victim));
            }
        }),
        Action::Claim { adopts, releases } => writer.message(
            9,
            &v1::Claim {
                adopts: pod_refs(namespace, &adopts),
                releases: pod_refs(namespace, &releases),
            },
        ),
        Action::WriteStatus(status) => writer.message(
            10,
            &v1::WriteStatus {
                status: Some(self::status(*status)),
            },
        ),
    }
}

/// Writes what [`victim`] builds.
fn write_victim(writer: &mut Writer<'_>, namespace: &str, victim: &Victim) {
    let Victim {
        pod: PodRef { name, uid },
        version,
        reason,
    } = victim;
    uid.with_text(|uid| writer.nested(1, |it| write_ref(it, namespace, name, uid)));
    writer.displayed(2, *version);
    writer.nested(3, |it| write_reason(it, reason));
}

/// Writes what [`object_ref`] builds.
fn write_ref(writer: &mut Writer<'_>, namespace: &str, name: &str, uid: &str) {
    writer.text(1, namespace);
    writer.text(2, name);
    writer.text(3, uid);
}

/// Writes what [`reason`] builds.
fn write_reason(writer: &mut Writer<'_>, reason: &Reason) {
    let Reason { rule, detail } = reason;
    writer.number(1, i32::from(self::rule(*rule)).unsigned_abs().into());
    writer.text(2, detail);
}

fn pod_ref(namespace: &Arc<str>, PodRef { name, uid }: &PodRef) -> v1::ObjectRef {
    uid.with_text(|uid| object_ref(namespace, name, uid))
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

#[cfg(test)]
mod tests;
