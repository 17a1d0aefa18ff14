//! The bytes of a batch are those that prost writes.

use proptest::{option, prelude::*};
use prost::Message as _;
use server_core::{BatchId, CompactUid, Rule, Timestamp, Uid};

use super::*;
use crate::wire::reason::reasons;

const RULES: [Rule; 5] = [
    Rule::TooFewReplicas,
    Rule::AllGo,
    Rule::CrowdedNode,
    Rule::Uid,
    Rule::Throttled,
];

/// Builds the message that a batch is.
fn message(batch: &Batch, guard: &v1::Guard, traceparent: &str) -> v1::Batch {
    let namespace = &batch.key.namespace;
    let action = match batch.action.clone() {
        Action::Create {
            names,
            generate_name,
            slow_start_initial,
        } => v1::batch::Action::Create(v1::Create {
            names: names.iter().map(ToString::to_string).collect(),
            generate_name: generate_name.to_string(),
            slow_start_initial: field::int32(slow_start_initial),
        }),
        Action::Delete(victims) => v1::batch::Action::Delete(v1::Delete {
            victims: victims
                .into_iter()
                .map(|it| victim(namespace, it))
                .collect(),
        }),
        Action::Claim { adopts, releases } => v1::batch::Action::Claim(v1::Claim {
            adopts: pod_refs(namespace, &adopts),
            releases: pod_refs(namespace, &releases),
        }),
        Action::WriteStatus(written) => v1::batch::Action::WriteStatus(v1::WriteStatus {
            status: Some(status(*written)),
        }),
    };
    v1::Batch {
        id: batch.id.0,
        replica_set: Some(key_ref(&batch.key)),
        generation: batch.generation,
        replica_set_version: version(batch.replica_set_version),
        pods_version: version(batch.pods_version),
        guard: Some(guard.clone()),
        action: Some(action),
        reasons: reasons(batch.reasons.clone()),
        traceparent: traceparent.to_owned(),
    }
}

/// Texts on both sides of what a length of one byte says, and empty ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zé]{0,20}", "[a-z]{100,150}"]
}

fn shared() -> impl Strategy<Value = Arc<str>> {
    text().prop_map(Arc::from)
}

fn any_reason() -> impl Strategy<Value = Reason> {
    let rule = prop::sample::select(&RULES[..]);
    (rule, text()).prop_map(|(rule, detail)| Reason {
        rule,
        detail: detail.into(),
    })
}

fn any_version() -> impl Strategy<Value = Option<ResourceVersion>> {
    option::of((1..=u64::MAX).prop_map(ResourceVersion))
}

fn pod() -> impl Strategy<Value = PodRef> {
    (shared(), shared()).prop_map(|(name, uid)| PodRef {
        name,
        uid: CompactUid::of(&uid),
    })
}

fn any_victim() -> impl Strategy<Value = Victim> {
    let victim = (pod(), any_version(), any_reason());
    victim.prop_map(|(pod, version, reason)| Victim {
        pod,
        version,
        reason,
    })
}

fn any_status() -> impl Strategy<Value = Status> {
    let condition = (text(), option::of(any::<i64>()), text());
    let condition = condition.prop_map(|(kind, time, message)| Condition {
        kind,
        status: "True".to_owned(),
        last_transition: time.map(Timestamp),
        reason: String::new(),
        message,
    });
    let numbers = (any::<[i32; 4]>(), option::of(any::<i32>()), any::<i64>());
    let conditions = prop::collection::vec(condition, 0..3);
    (numbers, conditions).prop_map(|((counts, terminating, generation), conditions)| Status {
        replicas: counts[0],
        fully_labeled_replicas: counts[1],
        ready_replicas: counts[2],
        available_replicas: counts[3],
        terminating_replicas: terminating,
        observed_generation: generation,
        conditions,
    })
}

fn action() -> impl Strategy<Value = Action> {
    let names = prop::collection::vec(shared(), 0..40);
    let create = (names, shared(), any::<u32>());
    let create = create.prop_map(
        |(names, generate_name, slow_start_initial)| Action::Create {
            names,
            generate_name,
            slow_start_initial,
        },
    );
    let delete = prop::collection::vec(any_victim(), 0..40).prop_map(Action::Delete);
    let pods = || prop::collection::vec(pod(), 0..5);
    let claim = (pods(), pods());
    let claim = claim.prop_map(|(adopts, releases)| Action::Claim { adopts, releases });
    let status = any_status().prop_map(|status| Action::WriteStatus(Box::new(status)));
    prop_oneof![create, delete, claim, status]
}

fn any_batch() -> impl Strategy<Value = Batch> {
    let key = (shared(), shared(), shared());
    let key = key.prop_map(|(namespace, name, uid)| Key {
        namespace,
        name,
        uid: Uid(uid),
    });
    let versions = (any_version(), any_version());
    let reasons = prop::collection::vec(any_reason(), 0..3);
    let parts = (any::<u64>(), key, any::<i64>(), versions, action(), reasons);
    parts.prop_map(|(id, key, generation, versions, action, reasons)| Batch {
        id: BatchId(id),
        key,
        generation,
        replica_set_version: versions.0,
        pods_version: versions.1,
        action,
        reasons,
    })
}

proptest! {
    #[test]
    fn bytes_of_a_batch_are_those_of_its_message(
        batch in any_batch(),
        session_id in text(),
        epoch in any::<i64>(),
        traceparent in text(),
    ) {
        let guard = v1::Guard { session_id, epoch };
        let expected = message(&batch, &guard, &traceparent);
        let written = super::batch(batch, &guard, &traceparent);
        prop_assert_eq!(written.is_traced, !traceparent.is_empty());
        let read = v1::Batch::decode(&*written.bytes);
        prop_assert_eq!(read.as_ref(), Ok(&expected));
        prop_assert!(written.bytes == expected.encode_to_vec(), "{:?}", expected);
    }
}
