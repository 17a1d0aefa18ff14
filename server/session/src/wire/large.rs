//! Objects above the size limit. Only their names are read, as far as possible.

use decree_api::v1;
use decree_core::{After, BatchId, OperationResult, Outcome, ReplicaSet};

use super::{
    Rejected, Violation, field,
    fields::{MalformedFrame, OBJECT_BYTES_MAX, Value},
    object::replica_set,
    raw::{fields, text_of_field, uint32},
};

/// An object that is too large, as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargeObject<'a> {
    kind: v1::Kind,
    bytes: &'a [u8],
}

impl<'a> LargeObject<'a> {
    /// Returns the object with these bytes, if it is too large.
    pub(crate) fn of(kind: v1::Kind, bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() > OBJECT_BYTES_MAX).then_some(Self { kind, bytes })
    }

    /// Returns a ReplicaSet that can be named as quarantined, and any other object as not accepted.
    pub(crate) fn read(self) -> Result<Box<ReplicaSet>, Rejected> {
        let Self { kind, bytes } = self;
        // Pods and ReplicaSets have their names in the same fields.
        let texts = [1, 2, 3, 4].map(|field| text_of_field(bytes, field).unwrap_or_default());
        let [namespace, name, uid, version] = texts;
        let too_large = Violation::too_large("object", bytes.len());
        let rejected = |fault| Rejected::new(kind, [namespace, name, uid], vec![fault]);
        if kind != v1::Kind::ReplicaSet {
            return Err(rejected(too_large));
        }
        let named = v1::ReplicaSet {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            resource_version: version.to_owned(),
            ..v1::ReplicaSet::default()
        };
        let mut set = replica_set(&named).map_err(|_| rejected(too_large.clone()))?;
        set.selector = Err(too_large.into());
        Ok(Box::new(set))
    }

    /// Returns the pod or ReplicaSet in one of these fields of a message, if the object is too large.
    ///
    /// # Errors
    /// If the message itself is too large, and is not one of the contract.
    pub(crate) fn within(
        message: &'a [u8],
        pod: u32,
        replica_set: u32,
    ) -> Result<Option<Self>, MalformedFrame> {
        if message.len() <= OBJECT_BYTES_MAX {
            return Ok(None);
        }
        let mut found = None;
        let read = fields(message, 0, |field, value| {
            let kinds = [(pod, v1::Kind::Pod), (replica_set, v1::Kind::ReplicaSet)];
            let kind = kinds.into_iter().find(|(number, _)| *number == field);
            if let (Some((_, kind)), Value::Bytes(bytes)) = (kind, value) {
                found = found.or_else(|| Self::of(kind, bytes));
            }
            Some(())
        });
        read.map(|()| found)
            .ok_or(MalformedFrame::Large(message.len()))
    }
}

/// Reads an outcome whose object is too large. A rejected object counts as not carried, and the core asks for a list. Returns `None` if the
/// object is not too large.
///
/// # Errors
/// If the outcome itself is too large, and is not one of the contract.
pub(crate) fn outcome_with_large_object(
    outcome: &[u8],
) -> Result<Option<(Outcome, Option<Rejected>)>, MalformedFrame> {
    if outcome.len() <= OBJECT_BYTES_MAX {
        return Ok(None);
    }
    let (mut batch, mut operation, mut done) = (0, 0, &[][..]);
    let read = fields(outcome, 0, |field, value| {
        match (field, value) {
            (1, Value::Number(number)) => batch = number,
            (2, Value::Number(number)) => operation = uint32(number),
            (3, Value::Bytes(bytes)) => done = bytes,
            _ => {}
        }
        Some(())
    });
    read.ok_or(MalformedFrame::Large(outcome.len()))?;
    let Some(object) = LargeObject::within(done, 3, 4)? else {
        return Ok(None);
    };
    let version = text_of_field(done, 2).unwrap_or_default();
    let version = field::version("resource_version", version).ok().flatten();
    let (after, rejected) = match object.read() {
        Ok(set) => (Some(After::ReplicaSet(set)), None),
        Err(rejected) => (None, Some(rejected)),
    };
    let outcome = Outcome {
        batch: BatchId(batch),
        operation,
        result: OperationResult::Done { version, after },
    };
    Ok(Some((outcome, rejected)))
}
