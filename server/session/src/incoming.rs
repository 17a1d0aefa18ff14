//! A frame of the agent, as its bytes. Its objects, events, outcomes and nodes are read one at a time, each when it is needed. Two million empty
//! pods fit a frame of 4 MiB, and would take gigabytes if all were read at once.

use bytes::Bytes;
use decree_api::v1;
use prost::Message;

use crate::{
    refusal::Refusal,
    wire::{Fields, MalformedFrame, OBJECT_BYTES_MAX, Value, Violation},
};

/// The field of `ReconcileRequest` with the number of the frame.
const SEQUENCE: u32 = 1;

/// A frame as it came: the bytes of a `ReconcileRequest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingFrame(Bytes);

/// The content of a frame without the items of its list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) sequence: u64,
    pub(crate) list: Option<List>,
}

/// The lists that a frame may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Objects,
    Events,
    Outcomes,
    Nodes,
}

/// An object, an event, an outcome, or news of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Pod(&'a [u8]),
    ReplicaSet(&'a [u8]),
    Event(&'a [u8]),
    Outcome(&'a [u8]),
    Node(&'a [u8]),
    DeletedNode(&'a [u8]),
    NodesComplete,
}

/// The items of a list that are left.
#[derive(Debug)]
pub(crate) struct Items<'a> {
    list: List,
    /// The fields of the frame after the current piece of the list.
    pieces: Fields<'a>,
    piece: Fields<'a>,
}

impl IncomingFrame {
    /// Checks that a whole frame may be read: its items would take many times their bytes, so it has no list.
    ///
    /// # Errors
    /// If it has a list, or is malformed, or larger than an object may be.
    pub fn check_whole(&self) -> Result<(), Refusal> {
        let length = self.0.len();
        if length > OBJECT_BYTES_MAX {
            return Err(Refusal::field(Violation::too_large("frame", length)));
        }
        match self.head()?.list {
            Some(_) => Err(Refusal::HelloExpected),
            None => Ok(()),
        }
    }

    /// Reads a whole frame that has no list, such as a Hello.
    ///
    /// # Errors
    /// If it [may not be read](Self::check_whole), or is no message.
    pub fn to_message(&self) -> Result<v1::ReconcileRequest, Refusal> {
        self.check_whole()?;
        let message = v1::ReconcileRequest::decode(&*self.0);
        Ok(message.map_err(MalformedFrame::from)?)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the content beside the items.
    ///
    /// # Errors
    /// If it is no message, as far as is visible without its content, or has several contents. A list in several pieces is one list, as in
    /// any protobuf.
    pub(crate) fn head(&self) -> Result<Head, MalformedFrame> {
        let (mut head, mut content) = (Head::default(), None);
        for field in Fields(&self.0) {
            let (field, value) = field?;
            match (field, value) {
                (SEQUENCE, Value::Number(number)) => head.sequence = number,
                (2..=10, Value::Bytes(_)) => {
                    if content.replace(field).is_some_and(|other| other != field) {
                        return Err(MalformedFrame::Twice);
                    }
                    head.list = List::of_field(field);
                }
                (..=10, _) => return Err(MalformedFrame::WireType(field)),
                (11.., _) => {}
            }
        }
        Ok(head)
    }

    /// Returns the items of a list of the frame, in their order. The list may be in several pieces; its frame has a sound [head](Self::head).
    pub(crate) fn items(&self, list: List) -> Items<'_> {
        self.items_after(list, [self.0.len(), 0])
    }

    /// Returns the items that are left of [`Self::items`], if these are the bytes that are [left](Items::left).
    pub(crate) fn items_after(&self, list: List, [left, left_of_piece]: [usize; 2]) -> Items<'_> {
        let (read, pieces) = self.0.split_at(self.0.len() - left);
        let (_, piece) = read.split_at(read.len() - left_of_piece);
        Items {
            list,
            pieces: Fields(pieces),
            piece: Fields(piece),
        }
    }
}

impl Items<'_> {
    /// The number of bytes that are not read after the current piece of the list, and at the end of that piece.
    pub(crate) const fn left(&self) -> [usize; 2] {
        [self.pieces.0.len(), self.piece.0.len()]
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, MalformedFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(field) = self.piece.next() {
                let item = self.list.item(field).transpose();
                if item.is_some() {
                    return item;
                }
            } else if let Ok((field, Value::Bytes(piece))) = self.pieces.next()?
                && List::of_field(field) == Some(self.list)
            {
                self.piece = Fields(piece);
            }
        }
    }
}

impl From<Bytes> for IncomingFrame {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<v1::ReconcileRequest> for IncomingFrame {
    fn from(message: v1::ReconcileRequest) -> Self {
        Self(message.encode_to_vec().into())
    }
}

impl List {
    /// Returns the list in a field of `ReconcileRequest`.
    const fn of_field(field: u32) -> Option<Self> {
        match field {
            4 => Some(Self::Objects),
            6 => Some(Self::Events),
            7 => Some(Self::Outcomes),
            9 => Some(Self::Nodes),
            _ => None,
        }
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
            (Self::Nodes, 1) => Item::Node,
            (Self::Nodes, 2) => Item::DeletedNode,
            (Self::Nodes, 3) => {
                return match value {
                    Value::Number(is) => Ok((is != 0).then_some(Item::NodesComplete)),
                    Value::Bytes(_) | Value::Other => Err(MalformedFrame::WireType(field)),
                };
            }
            (Self::Objects | Self::Events | Self::Outcomes | Self::Nodes, _) => return Ok(None),
        };
        match value {
            Value::Bytes(bytes) => Ok(Some(item(bytes))),
            Value::Number(_) | Value::Other => Err(MalformedFrame::WireType(field)),
        }
    }
}

#[cfg(test)]
mod tests;
