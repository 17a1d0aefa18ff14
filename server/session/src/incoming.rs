//! Reads a frame of the agent part by part, so that one of 4 MiB keeps nobody waiting and does not become a hundred times as large in
//! memory: an empty pod takes two bytes on the wire and hundreds when it is read.
//!
//! A part is a frame of the same sort with the next few objects, events or outcomes. Frames without such lists are one part.

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
/// How many fields beside its items a frame may have, and a part of its list. An agent of a later version sends a few that are not known.
const FIELDS_MAX: usize = 1_000;
/// How many bytes of a list end a part.
const PART_BYTES: usize = 16 << 10;

/// A frame that is being read.
#[derive(Clone, Debug)]
pub struct IncomingFrame(State);

/// What is left of a frame.
#[derive(Clone, Debug)]
enum State {
    /// All of it, to be read in one go.
    Whole(Bytes),
    /// A list.
    List {
        list: List,
        /// The frame's number; 0 once its first part is read.
        sequence: u64,
        rest: Bytes,
    },
    Read,
}

/// The next part of a frame: a frame of the same sort. Only the first part of a frame has its number.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub(crate) content: Content,
    pub(crate) extent: Extent,
}

/// What a part has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A message that has been read.
    Frame(v1::ReconcileRequest),
    /// Items that are read when they are taken.
    Items(Items),
}

/// Whether a frame goes on behind a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Another part follows.
    More,
    /// The frame ends.
    Last,
}

// === impl IncomingFrame ===

impl IncomingFrame {
    /// Begins to read the bytes of a `ReconcileRequest`.
    ///
    /// # Errors
    /// If they are none, as far as can be seen without looking into lists.
    pub fn new(bytes: Bytes) -> Result<Self, MalformedFrame> {
        let is_small = bytes.len() < SMALL_FRAME;
        match find_list(bytes.clone()) {
            Err(error) if !is_small => Err(error),
            Ok((sequence, Some((list, rest)), is_all)) if is_all || !is_small => {
                Ok(Self(State::List {
                    list,
                    sequence,
                    rest,
                }))
            }
            Ok(_) | Err(_) => Ok(Self(State::Whole(bytes))),
        }
    }

    /// Returns the next part with at most `items_max` objects, events or outcomes; `None` behind the last.
    ///
    /// # Errors
    /// If the bytes are no frame, as far as can be seen without looking into items. Nothing follows.
    pub fn next_part(&mut self, items_max: usize) -> Result<Option<Part>, MalformedFrame> {
        match std::mem::replace(&mut self.0, State::Read) {
            State::Read => Ok(None),
            State::Whole(bytes) => {
                let request = shape::read(&bytes, &Shape::REQUEST)?;
                Ok(Some(Part::new(request, Extent::Last)))
            }
            State::List {
                list,
                sequence,
                mut rest,
            } => {
                let bytes = part(list, &mut rest, items_max.max(1))?;
                let extent = if rest.is_empty() {
                    Extent::Last
                } else {
                    self.0 = State::List {
                        list,
                        sequence: 0,
                        rest,
                    };
                    Extent::More
                };
                let content = Content::Items(Items {
                    list,
                    sequence,
                    bytes,
                });
                Ok(Some(Part { content, extent }))
            }
        }
    }

    /// Returns whether all of it is read.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self.0, State::Read)
    }
}

// === impl Part ===

impl Part {
    /// Returns a message that was read in one go as a part of a frame.
    #[must_use]
    pub const fn new(request: v1::ReconcileRequest, extent: Extent) -> Self {
        let content = Content::Frame(request);
        Self { content, extent }
    }

    /// Returns whether the frame goes on.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    pub(crate) const fn sequence(&self) -> u64 {
        match &self.content {
            Content::Frame(request) => request.sequence,
            Content::Items(items) => items.sequence,
        }
    }

    /// Hands each place in a trace that an event or an outcome names to `begin`, an outcome with it, and writes what that returns over it.
    ///
    /// The items are read only as far as that takes. A place in a format that is not ours stays as it is, and so does what stands in an
    /// item that is no message, which the session says when it takes the part.
    pub fn trace(
        &mut self,
        begin: impl FnMut(TraceContext, Option<&v1::Outcome>) -> Option<TraceContext>,
    ) {
        match &mut self.content {
            Content::Frame(request) => trace::frame(request, begin),
            Content::Items(items) => trace::items(items, begin),
        }
    }

    /// Reads the part in one go, as far as its items are within their bounds.
    ///
    /// # Errors
    /// If an item is no message.
    pub fn into_request(self) -> Result<v1::ReconcileRequest, MalformedFrame> {
        match self.content {
            Content::Frame(request) => Ok(request),
            Content::Items(items) => items.to_request(),
        }
    }

    /// Appends the part as a `ReconcileRequest`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.content {
            Content::Frame(request) => request.encode(out).expect("a vector takes all"),
            Content::Items(items) => items.encode(out),
        }
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

/// Returns the next items of a list, with what is not known between them and behind, so that what is left begins with an item.
fn part(list: List, rest: &mut Bytes, items_max: usize) -> Result<Bytes, MalformedFrame> {
    let mut ahead = &**rest;
    let (mut items, mut bytes, mut others) = (0, 0, 0);
    let mut end = ahead.len();
    while ahead.has_remaining() {
        let begin = ahead.len();
        let (field, wire) = decode_key(&mut ahead)?;
        if !list.has(field) {
            count(&mut others)?;
            skip_field(wire, field, &mut ahead, DecodeContext::default())?;
            continue;
        }
        if wire != WireType::LengthDelimited {
            return Err(MalformedFrame::WireType(field));
        }
        if items == items_max || bytes >= PART_BYTES {
            end = rest.len() - begin;
            break;
        }
        items += 1;
        bytes += field::delimited_slice(&mut ahead)?.len();
    }
    Ok(rest.split_to(end))
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
