//! Reads a frame of the agent item by item, so that one of 4 MiB does not become a hundred times as large in memory: an empty pod takes two
//! bytes on the wire and hundreds when it is read.

use bytes::{Buf, Bytes};
use decree::{TraceContext, v1};
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

pub use self::field::MalformedFrame;
pub(crate) use self::items::{Item, Items, List, PODS, REPLICA_SETS};
pub(crate) use self::shape::SMALL;
use self::{field::delimited, shape::Shape};

mod field;
mod items;
mod shape;
mod trace;

/// The number of a frame in `ReconcileRequest`.
const SEQUENCE: u32 = 1;
/// A frame of fewer bytes that has more than a number and a list is read in one go.
const SMALL_FRAME: usize = 1 << 10;
/// How many fields beside its items a frame may have, and its list. An agent of a later version sends a few that are not known.
const FIELDS_MAX: usize = 1_000;

/// A frame of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingFrame(pub(crate) Content);

/// What a frame has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A message that has been read.
    Frame(v1::ReconcileRequest),
    /// Items that are read when they are taken.
    Items(Items),
}

// === impl IncomingFrame ===

impl IncomingFrame {
    /// Reads the bytes of a `ReconcileRequest`, whose items are read when they are taken.
    ///
    /// # Errors
    /// If they are none, as far as can be seen without looking into items.
    pub fn new(bytes: Bytes) -> Result<Self, MalformedFrame> {
        let is_small = bytes.len() < SMALL_FRAME;
        let content = match find_list(bytes.clone()) {
            Err(error) if !is_small => return Err(error),
            Ok((sequence, Some((list, bytes)), is_all)) if is_all || !is_small => {
                check_items(list, &bytes)?;
                Content::Items(Items {
                    list,
                    sequence,
                    bytes,
                })
            }
            Ok(_) | Err(_) => Content::Frame(shape::read(&bytes, &Shape::REQUEST)?),
        };
        Ok(Self(content))
    }

    /// Returns how many bytes its items take.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match &self.0 {
            Content::Frame(_) => 0,
            Content::Items(items) => items.bytes.len(),
        }
    }

    pub(crate) const fn sequence(&self) -> u64 {
        match &self.0 {
            Content::Frame(request) => request.sequence,
            Content::Items(items) => items.sequence,
        }
    }

    /// Hands each place in a trace that an event or an outcome names to `begin`, an outcome with it, and writes what that returns over it.
    ///
    /// The items are read only as far as that takes. A place in a format that is not ours stays as it is, and so does what stands in an
    /// item that is no message, which the session says when it takes the frame.
    pub fn trace(
        &mut self,
        begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
    ) {
        match &mut self.0 {
            Content::Frame(request) => trace::frame(request, begin),
            Content::Items(items) => trace::items(items, begin),
        }
    }

    /// Reads the frame in one go, as far as its items are within their bounds.
    ///
    /// # Errors
    /// If an item is no message.
    pub fn into_request(self) -> Result<v1::ReconcileRequest, MalformedFrame> {
        match self.0 {
            Content::Frame(request) => Ok(request),
            Content::Items(items) => items.to_request(),
        }
    }

    /// Appends the frame as a `ReconcileRequest`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Content::Frame(request) => request.encode(out).expect("a vector takes all"),
            Content::Items(items) => items.encode(out),
        }
    }
}

impl From<v1::ReconcileRequest> for IncomingFrame {
    fn from(request: v1::ReconcileRequest) -> Self {
        Self(Content::Frame(request))
    }
}

/// A list, with the number of its frame before it, and whether that is all there is.
type FoundList = (u64, Option<(List, Bytes)>, bool);

/// Looks for the list of a frame.
fn find_list(mut rest: Bytes) -> Result<FoundList, MalformedFrame> {
    let (mut sequence, mut found, mut fields) = (0, None, 0);
    let mut is_all = true;
    while rest.has_remaining() {
        count(&mut fields)?;
        let (field, wire) = decode_key(&mut rest)?;
        match (List::of_field(field), wire) {
            (Some(list), WireType::LengthDelimited) => {
                let inner = delimited(&mut rest)?;
                if found.replace((list, inner)).is_some() {
                    return Err(MalformedFrame::Twice);
                }
            }
            (None, WireType::Varint) if field == SEQUENCE => sequence = decode_varint(&mut rest)?,
            _ => {
                is_all = false;
                skip_field(wire, field, &mut rest, DecodeContext::default())?;
            }
        }
    }
    Ok((sequence, found, is_all))
}

/// Looks at the items of a list, and at what is not known between them, as far as their lengths.
fn check_items(list: List, mut bytes: &[u8]) -> Result<(), MalformedFrame> {
    let mut others = 0;
    while bytes.has_remaining() {
        let (field, wire) = decode_key(&mut bytes)?;
        if !list.has(field) {
            count(&mut others)?;
            skip_field(wire, field, &mut bytes, DecodeContext::default())?;
        } else if wire == WireType::LengthDelimited {
            field::delimited_slice(&mut bytes)?;
        } else {
            return Err(MalformedFrame::WireType(field));
        }
    }
    Ok(())
}

const fn count(fields: &mut usize) -> Result<(), MalformedFrame> {
    *fields += 1;
    match *fields > FIELDS_MAX {
        true => Err(MalformedFrame::Fields(FIELDS_MAX)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
