//! The items of a list, as they are on the wire.

use crate::wire::{Fields, MalformedFrame, Value};

/// The lists that a frame may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Objects,
    Events,
    Outcomes,
}

/// An object, an event or an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Pod(&'a [u8]),
    ReplicaSet(&'a [u8]),
    Event(&'a [u8]),
    Outcome(&'a [u8]),
}

// === impl List ===

impl List {
    /// Returns the list in a field of `ReconcileRequest`.
    pub(super) const fn of_field(field: u32) -> Option<Self> {
        match field {
            4 => Some(Self::Objects),
            6 => Some(Self::Events),
            7 => Some(Self::Outcomes),
            _ => None,
        }
    }

    /// Returns the items of the list in a frame that has been read without its items. The list may be in several pieces.
    pub(super) fn items(
        self,
        frame: &[u8],
    ) -> impl Iterator<Item = Result<Item<'_>, MalformedFrame>> {
        let pieces = Fields(frame).filter_map(move |field| match field {
            Ok((field, Value::Bytes(piece))) if Self::of_field(field) == Some(self) => Some(piece),
            Ok(_) | Err(_) => None,
        });
        let fields = pieces.flat_map(Fields);
        fields.filter_map(move |field| self.item(field).transpose())
    }

    /// Returns the item in a field of a piece of the list, if there is one.
    fn item<'a>(
        self,
        field: Result<(u32, Value<'a>), MalformedFrame>,
    ) -> Result<Option<Item<'a>>, MalformedFrame> {
        let (field, value) = field?;
        let item = match (self, field) {
            (Self::Objects, 1) => Item::Pod,
            (Self::Objects, 2) => Item::ReplicaSet,
            (Self::Events, 1) => Item::Event,
            (Self::Outcomes, 1) => Item::Outcome,
            (Self::Objects | Self::Events | Self::Outcomes, _) => return Ok(None),
        };
        match value {
            Value::Bytes(bytes) => Ok(Some(item(bytes))),
            Value::Number(_) | Value::Other => Err(MalformedFrame::WireType(field)),
        }
    }
}
