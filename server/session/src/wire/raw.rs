//! Pods, and events with pods, from the bytes of the wire, without a copy of any text.
//!
//! This reads the messages that agents usually write: known fields, each once, in their types. Prost reads everything else: unknown or
//! repeated fields, and maps with a repeated key. A test checks that both readers agree.

use decree_api::v1;
use decree_core::OwnerView;
use prost::Message;
use prost_types::Timestamp;

use super::fields::{Fields, Value};

/// A pod as it is on the wire, without its labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RawPod<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
    pub(crate) controller: Option<OwnerView<'a>>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) deleted: Option<Timestamp>,
    pub(crate) node_name: &'a str,
    pub(crate) phase: i32,
    pub(crate) ready: Option<v1::ReadyCondition>,
    pub(crate) deletion_cost: &'a str,
    pub(crate) max_regular_restarts: i32,
    pub(crate) max_sidecar_restarts: i32,
    pub(crate) disruption_target: bool,
    pub(crate) waiting_reason: &'a str,
    pub(crate) leaving: bool,
    pub(crate) advised_cost: &'a str,
}

/// The labels of a pod, sorted by key, each key once.
pub(crate) type RawLabels<'a> = Vec<(&'a str, &'a str)>;

impl<'a> RawPod<'a> {
    /// Reads a pod, and puts its labels into `labels`. Returns `None` if prost must read it.
    pub(crate) fn read(bytes: &'a [u8], labels: &mut RawLabels<'a>) -> Option<Self> {
        let mut pod = Self::default();
        labels.clear();
        fields(bytes, 1 << 5, |field, value| {
            match (field, value) {
                (1, Value::Bytes(bytes)) => pod.namespace = text(bytes)?,
                (2, Value::Bytes(bytes)) => pod.name = text(bytes)?,
                (3, Value::Bytes(bytes)) => pod.uid = text(bytes)?,
                (4, Value::Bytes(bytes)) => pod.resource_version = text(bytes)?,
                (5, Value::Bytes(bytes)) => labels.push(label(bytes)?),
                (6, Value::Bytes(bytes)) => pod.controller = Some(owner(bytes)?),
                (7, Value::Bytes(bytes)) => pod.created = Some(message(bytes)?),
                (8, Value::Bytes(bytes)) => pod.deleted = Some(message(bytes)?),
                (9, Value::Bytes(bytes)) => pod.node_name = text(bytes)?,
                (10, Value::Number(number)) => pod.phase = int32(number),
                (11, Value::Bytes(bytes)) => pod.ready = Some(message(bytes)?),
                (12, Value::Bytes(bytes)) => pod.deletion_cost = text(bytes)?,
                (13, Value::Number(number)) => pod.max_regular_restarts = int32(number),
                (14, Value::Number(number)) => pod.max_sidecar_restarts = int32(number),
                (15, Value::Number(number)) => pod.disruption_target = number != 0,
                (16, Value::Bytes(bytes)) => pod.waiting_reason = text(bytes)?,
                (17, Value::Number(number)) => pod.leaving = number != 0,
                (18, Value::Bytes(bytes)) => pod.advised_cost = text(bytes)?,
                _ => return None,
            }
            Some(())
        })?;
        labels.sort_unstable();
        let is_once = labels.windows(2).all(|pair| pair[0].0 != pair[1].0);
        is_once.then_some(pod)
    }
}

/// Reads an event that shows a pod, and puts the pod's labels into `labels`. Returns `None` if it is another event, or prost must read it.
pub(crate) fn read_event<'a>(bytes: &'a [u8], labels: &mut RawLabels<'a>) -> Option<RawPod<'a>> {
    let mut pod = None;
    fields(bytes, 0, |field, value| {
        let (1, Value::Bytes(bytes)) = (field, value) else {
            return None;
        };
        pod = Some(bytes);
        Some(())
    })?;
    RawPod::read(pod?, labels)
}

/// Returns the text of a field of a message; `None` if the field is absent, or the message cannot be read up to it.
pub(crate) fn text_of_field(bytes: &[u8], wanted: u32) -> Option<&str> {
    let (mut found, repeated) = (None, !(1 << wanted));
    fields(bytes, repeated, |field, value| {
        if let (true, Value::Bytes(bytes)) = (field == wanted, value) {
            found = Some(text(bytes)?);
        }
        Some(())
    })?;
    found
}

/// Passes on the fields of a message in their order. Returns `None` if a field outside of the mask `repeated` comes twice, or is not one of
/// 1 to 31, or is neither a number nor bytes. Also returns `None` if `take` does.
pub(super) fn fields<'a>(
    bytes: &'a [u8],
    repeated: u32,
    mut take: impl FnMut(u32, Value<'a>) -> Option<()>,
) -> Option<()> {
    let mut seen = 0_u32;
    for field in Fields(bytes) {
        let (field, value) = field.ok()?;
        let bit = 1_u32.checked_shl(field)?;
        if seen & bit & !repeated != 0 || value == Value::Other {
            return None;
        }
        seen |= bit;
        take(field, value)?;
    }
    Some(())
}

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

/// Reads a message without texts.
fn message<M: Message + Default + Copy>(bytes: &[u8]) -> Option<M> {
    M::decode(bytes).ok()
}

/// Converts a number as prost does for a field of this type: to its lowest bits.
const fn int32(number: u64) -> i32 {
    number as i32
}

/// Converts a number as [`int32`] does.
pub(super) const fn uint32(number: u64) -> u32 {
    number as u32
}

fn label(bytes: &[u8]) -> Option<(&str, &str)> {
    let (mut key, mut of_key) = ("", "");
    fields(bytes, 0, |field, value| {
        match (field, value) {
            (1, Value::Bytes(bytes)) => key = text(bytes)?,
            (2, Value::Bytes(bytes)) => of_key = text(bytes)?,
            _ => return None,
        }
        Some(())
    })?;
    Some((key, of_key))
}

fn owner(bytes: &[u8]) -> Option<OwnerView<'_>> {
    let mut owner = OwnerView {
        api_version: "",
        kind: "",
        name: "",
        uid: "",
        block_owner_deletion: None,
    };
    fields(bytes, 0, |field, value| {
        match (field, value) {
            (1, Value::Bytes(bytes)) => owner.api_version = text(bytes)?,
            (2, Value::Bytes(bytes)) => owner.kind = text(bytes)?,
            (3, Value::Bytes(bytes)) => owner.name = text(bytes)?,
            (4, Value::Bytes(bytes)) => owner.uid = text(bytes)?,
            (5, Value::Number(number)) => owner.block_owner_deletion = Some(number != 0),
            _ => return None,
        }
        Some(())
    })?;
    Some(owner)
}

pub(super) fn owner_of(owner: &v1::OwnerReference) -> OwnerView<'_> {
    let v1::OwnerReference {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion,
    } = owner;
    OwnerView {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion: *block_owner_deletion,
    }
}

#[cfg(test)]
pub(crate) mod tests;
