//! The items of a list, as they are on the wire.

use crate::wire::{MalformedFrame, Value, next_field};

/// The lists that a frame may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Objects,
    Events,
    Outcomes,
}

/// Takes the items of a list out of a frame, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Items<'a> {
    list: List,
    /// The remaining fields of the frame.
    frame: &'a [u8],
    /// The remaining fields of the current piece of the list.
    piece: &'a [u8],
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
}

// === impl Items ===

impl<'a> Items<'a> {
    pub(super) const fn new(frame: &'a [u8], list: List) -> Self {
        Self {
            list,
            frame,
            piece: &[],
        }
    }

    /// Continues with the next field, of the list or of the frame. Returns the item in it, if there is one.
    fn step(&mut self) -> Result<Option<Item<'a>>, MalformedFrame> {
        if self.piece.is_empty() {
            let (field, value) = next_field(&mut self.frame)?;
            if let (true, Value::Bytes(piece)) = (List::of_field(field) == Some(self.list), value) {
                self.piece = piece;
            }
            return Ok(None);
        }
        let (field, value) = next_field(&mut self.piece)?;
        let item = match (self.list, field) {
            (List::Objects, 1) => Item::Pod,
            (List::Objects, 2) => Item::ReplicaSet,
            (List::Events, 1) => Item::Event,
            (List::Outcomes, 1) => Item::Outcome,
            (List::Objects | List::Events | List::Outcomes, _) => return Ok(None),
        };
        match value {
            Value::Bytes(bytes) => Ok(Some(item(bytes))),
            Value::Number(_) | Value::Other => Err(MalformedFrame::WireType(field)),
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, MalformedFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.piece.is_empty() || !self.frame.is_empty() {
            let step = self.step();
            if step.is_err() {
                (self.frame, self.piece) = (&[], &[]);
            }
            if let Some(item) = step.transpose() {
                return Some(item);
            }
        }
        None
    }
}
