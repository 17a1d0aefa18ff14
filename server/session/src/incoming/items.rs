//! The items of a list, as they stand on the wire.

use bytes::Bytes;
use decree::v1::{self, reconcile_request::Frame};
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field},
};

use super::{
    MalformedFrame,
    field::delimited_slice,
    shape::{self, SMALL, Shape},
};

/// The items of the list of a frame: objects, events or outcomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Items {
    /// The list's number in the frame.
    pub(super) list: List,
    /// The number of the frame.
    pub(crate) sequence: u64,
    /// The fields of the list, of which each has been looked at as far as its length.
    pub(super) bytes: Bytes,
}

/// The lists that a frame may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Objects,
    Events,
    Outcomes,
}

/// An item that stands in this field of its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) field: u32,
    pub(crate) bytes: &'a [u8],
}

/// The lists of `SnapshotObjects`; `Events` and `Outcomes` have one of number 1 each.
pub(crate) const PODS: u32 = 1;
pub(crate) const REPLICA_SETS: u32 = 2;

// === impl List ===

impl List {
    /// Returns the list that stands in a field of `ReconcileRequest`.
    pub(super) const fn of_field(field: u32) -> Option<Self> {
        match field {
            4 => Some(Self::Objects),
            6 => Some(Self::Events),
            7 => Some(Self::Outcomes),
            _ => None,
        }
    }

    const fn field(self) -> u32 {
        match self {
            Self::Objects => 4,
            Self::Events => 6,
            Self::Outcomes => 7,
        }
    }

    /// Returns whether a field of the list has items.
    pub(super) fn has(self, field: u32) -> bool {
        field == PODS || (self == Self::Objects && field == REPLICA_SETS)
    }
}

// === impl Items ===

impl Items {
    pub(crate) const fn list(&self) -> List {
        self.list
    }

    /// Returns the items in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Item<'_>, MalformedFrame>> {
        let mut rest = &*self.bytes;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                match self.next(&mut rest) {
                    Ok(None) => {}
                    Ok(Some(item)) => return Some(Ok(item)),
                    Err(error) => {
                        rest = &[];
                        return Some(Err(error));
                    }
                }
            }
            None
        })
    }

    fn next<'a>(&self, rest: &mut &'a [u8]) -> Result<Option<Item<'a>>, MalformedFrame> {
        let (field, wire) = decode_key(rest)?;
        if !self.list.has(field) {
            skip_field(wire, field, rest, DecodeContext::default())?;
            return Ok(None);
        }
        let bytes = delimited_slice(rest)?;
        Ok(Some(Item { field, bytes }))
    }

    /// Appends a `ReconcileRequest` with these items, of which what is out of bounds may be left out.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let head = v1::ReconcileRequest {
            sequence: self.sequence,
            frame: None,
        };
        head.encode(out).expect("a vector takes all");
        let bounded = self.bounded().ok().flatten();
        let bytes = bounded.as_deref().unwrap_or(&self.bytes);
        encode_key(self.list.field(), WireType::LengthDelimited, out);
        encode_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }

    /// Returns the items as far as they are within their bounds; `None` where none is so large that it may be beyond them.
    fn bounded(&self) -> Result<Option<Vec<u8>>, MalformedFrame> {
        let is_large = |item: Result<Item<'_>, _>| item.is_ok_and(|it| it.bytes.len() >= SMALL);
        if !self.iter().any(is_large) {
            return Ok(None);
        }
        let mut bounded = Vec::with_capacity(self.bytes.len());
        for item in self.iter() {
            let item = item?;
            let read = match (self.list, item.field) {
                _ if item.bytes.len() < SMALL => item.bytes.to_vec(),
                (List::Events, _) => item.event()?.encode_to_vec(),
                (List::Outcomes, _) => item.outcome()?.encode_to_vec(),
                (List::Objects, PODS) => item.pod()?.encode_to_vec(),
                (List::Objects, _) => item.replica_set()?.encode_to_vec(),
            };
            encode_key(item.field, WireType::LengthDelimited, &mut bounded);
            encode_varint(read.len() as u64, &mut bounded);
            bounded.extend(read);
        }
        Ok(Some(bounded))
    }

    /// Reads all items, as far as they are within their bounds.
    ///
    /// # Errors
    /// If one is no message.
    pub(crate) fn to_request(&self) -> Result<v1::ReconcileRequest, MalformedFrame> {
        let (mut objects, mut events) = (v1::SnapshotObjects::default(), v1::Events::default());
        let mut outcomes = v1::Outcomes::default();
        for item in self.iter() {
            let item = item?;
            match (self.list, item.field) {
                (List::Events, _) => events.events.push(item.event()?),
                (List::Outcomes, _) => outcomes.outcomes.push(item.outcome()?),
                (List::Objects, PODS) => objects.pods.push(item.pod()?),
                (List::Objects, _) => objects.replica_sets.push(item.replica_set()?),
            }
        }
        Ok(v1::ReconcileRequest {
            sequence: self.sequence,
            frame: Some(match self.list {
                List::Objects => Frame::SnapshotObjects(objects),
                List::Events => Frame::Events(events),
                List::Outcomes => Frame::Outcomes(outcomes),
            }),
        })
    }
}

// === impl Item ===

impl Item<'_> {
    /// Reads a pod of a list of objects.
    pub(crate) fn pod(self) -> Result<v1::Pod, MalformedFrame> {
        shape::read(self.bytes, &Shape::POD)
    }

    /// Reads a ReplicaSet of a list of objects.
    pub(crate) fn replica_set(self) -> Result<v1::ReplicaSet, MalformedFrame> {
        shape::read(self.bytes, &Shape::REPLICA_SET)
    }

    /// Reads an event of a list of events.
    pub(crate) fn event(self) -> Result<v1::Event, MalformedFrame> {
        shape::read(self.bytes, &Shape::EVENT)
    }

    /// Reads an outcome of a list of outcomes.
    pub(crate) fn outcome(self) -> Result<v1::Outcome, MalformedFrame> {
        shape::read(self.bytes, &Shape::OUTCOME)
    }
}
