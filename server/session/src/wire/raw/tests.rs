//! This reader and prost read the same.

use proptest::prelude::*;
use prost::Message;

use super::*;

impl<'a> RawPod<'a> {
    /// Converts a pod that prost has read, and puts its labels into `labels`, without [`Self::read`].
    #[expect(clippy::disallowed_methods, reason = "the labels are sorted")]
    fn of(pod: &'a v1::Pod, labels: &mut RawLabels<'a>) -> Self {
        let v1::Pod {
            namespace,
            name,
            uid,
            resource_version,
            labels: map,
            controller,
            creation_timestamp: created,
            deletion_timestamp: deleted,
            node_name,
            phase,
            ready,
            deletion_cost,
            max_regular_restarts,
            max_sidecar_restarts,
            disruption_target,
            waiting_reason,
            leaving,
            advised_cost,
        } = pod;
        labels.clear();
        labels.extend(map.iter().map(|(key, value)| (&**key, &**value)));
        labels.sort_unstable();
        Self {
            namespace,
            name,
            uid,
            resource_version,
            controller: controller.as_ref().map(owner_of),
            created: *created,
            deleted: *deleted,
            node_name,
            phase: *phase,
            ready: *ready,
            deletion_cost: deletion_cost.as_deref().unwrap_or_default(),
            max_regular_restarts: *max_regular_restarts,
            max_sidecar_restarts: *max_sidecar_restarts,
            disruption_target: *disruption_target,
            waiting_reason,
            leaving: *leaving,
            advised_cost: advised_cost.as_deref().unwrap_or_default(),
        }
    }
}

fn text_of() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-zé/.-]{1,9}", "[0-9]{1,21}"]
}

fn time_of() -> impl Strategy<Value = Timestamp> {
    (any::<i64>(), any::<i32>()).prop_map(|(seconds, nanos)| Timestamp { seconds, nanos })
}

prop_compose! {
    fn owners()(texts in proptest::array::uniform4(text_of()), block in any::<Option<bool>>()) -> v1::OwnerReference {
        let [api_version, kind, name, uid] = texts;
        v1::OwnerReference { api_version, kind, name, uid, block_owner_deletion: block }
    }
}

prop_compose! {
    /// Pods with any texts and numbers, few of which are valid.
    pub(crate) fn pods()(
        texts in proptest::array::uniform6(text_of()),
        labels in proptest::collection::hash_map(text_of(), text_of(), 0..5),
        controller in proptest::option::of(owners()),
        times in proptest::array::uniform3(proptest::option::of(time_of())),
        ready in any::<Option<bool>>(),
        costs in proptest::array::uniform2(proptest::option::of(text_of())),
        numbers in any::<[i32; 3]>(),
        [disruption_target, leaving] in any::<[bool; 2]>(),
    ) -> v1::Pod {
        let [namespace, name, uid, resource_version, node_name, waiting_reason] = texts;
        let [created, deleted, since] = times;
        let [deletion_cost, advised_cost] = costs;
        let [phase, max_regular_restarts, max_sidecar_restarts] = numbers;
        v1::Pod {
            namespace,
            name,
            uid,
            resource_version,
            labels,
            controller,
            creation_timestamp: created,
            deletion_timestamp: deleted,
            node_name,
            phase,
            ready: ready.map(|ready| v1::ReadyCondition { ready, last_transition_time: since }),
            deletion_cost,
            max_regular_restarts,
            max_sidecar_restarts,
            disruption_target,
            waiting_reason,
            leaving,
            advised_cost,
        }
    }
}

/// Changes of some bytes.
pub(crate) type Damage = Vec<(prop::sample::Index, u8)>;

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3)
}

pub(crate) fn damaged(mut bytes: Vec<u8>, damage: Damage) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    for (at, byte) in damage {
        *at.get_mut(&mut bytes) = byte;
    }
    bytes
}

/// Checks a pod that was read from bytes, and returns whether prost reads them, too.
fn check(bytes: &[u8], read: Option<RawPod<'_>>, labels: &RawLabels<'_>, pod: Option<&v1::Pod>) {
    let Some(read) = read else { return };
    let pod = pod.unwrap_or_else(|| panic!("prost does not read {bytes:?}"));
    let mut expected = RawLabels::new();
    assert_eq!(read, RawPod::of(pod, &mut expected));
    assert_eq!(*labels, expected);
}

proptest! {
    #[test]
    fn pods_are_those_that_prost_reads(pod in pods(), damage in damage()) {
        let (intact, mut labels) = (damage.is_empty(), RawLabels::new());
        let bytes = damaged(pod.encode_to_vec(), damage);
        let read = RawPod::read(&bytes, &mut labels);
        prop_assert!(read.is_some() || !intact, "what prost writes is read");
        let expected = v1::Pod::decode(&*bytes).ok();
        check(&bytes, read, &labels, expected.as_ref());
    }
}

#[test]
fn what_agents_do_not_write_is_left_to_prost() {
    let left = |bytes: &[u8]| RawPod::read(bytes, &mut RawLabels::new()).is_none();
    assert!(left(&[0x0a, 1, b'a', 0x0a, 1, b'b']), "a field twice");
    assert!(left(&[0x2a, 0, 0x2a, 0]), "a label twice");
    assert!(left(&[0x80, 1, 1]), "an unknown field");
    assert!(left(&[0x08, 1]), "another type");
    assert!(left(&[0x0a, 2, b'a']), "a length beyond the end");
    assert!(left(&[0x0a, 1, 0xff]), "no UTF-8");
    assert!(!left(&[0x2a, 0]), "an empty label");
}

#[test]
fn field_that_is_wanted_is_found_beside_others() {
    let pod = v1::Pod {
        node_name: "a".to_owned(),
        ..v1::Pod::default()
    };
    let bytes = pod.encode_to_vec();
    assert_eq!(text_of_field(&bytes, 9), Some("a"));
    assert_eq!(text_of_field(&bytes, 1), None);
    let later = [&[0x3a, 0, 0x3a, 0][..], &bytes].concat();
    assert_eq!(text_of_field(&later, 9), Some("a"));
    assert_eq!(text_of_field(&bytes.repeat(2), 9), None);
}
