//! Reads a frame of the agent part by part, so that one of 4 MiB keeps nobody waiting and does not become a hundred times as large in
//! memory: an empty pod takes two bytes on the wire and hundreds when it is read.
//!
//! A part is a frame of the same sort with the next few objects, events or outcomes. Frames without such lists are one part.

use bytes::{Buf, Bytes};
use decree::v1::{self, reconcile_request::Frame};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

pub use self::field::MalformedFrame;
use self::{field::delimited, shape::Shape};

mod field;
mod shape;

/// The fields of `ReconcileRequest`.
const SEQUENCE: u32 = 1;
const SNAPSHOT_OBJECTS: u32 = 4;
const EVENTS: u32 = 6;
const OUTCOMES: u32 = 7;
/// The lists of `SnapshotObjects`; `Events` and `Outcomes` have one of number 1 each.
const PODS: u32 = 1;
const REPLICA_SETS: u32 = 2;
/// A frame of fewer bytes is one part.
const SMALL: usize = 1 << 10;
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
        /// Its number in the frame.
        field: u32,
        /// The frame's number; 0 once its first part is read.
        sequence: u64,
        rest: Bytes,
    },
    Read,
}

/// The next part of a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// A frame of the same sort. Only the first part of a frame has its number.
    pub request: v1::ReconcileRequest,
    /// Whether the frame goes on.
    pub extent: Extent,
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
        if bytes.len() < SMALL {
            return Ok(Self(State::Whole(bytes)));
        }
        let (mut sequence, mut list) = (0, None);
        let (mut rest, mut fields) = (bytes.clone(), 0);
        while rest.has_remaining() {
            count(&mut fields)?;
            let (field, wire) = decode_key(&mut rest)?;
            match (field, wire) {
                (SEQUENCE, WireType::Varint) => sequence = decode_varint(&mut rest)?,
                (SNAPSHOT_OBJECTS | EVENTS | OUTCOMES, WireType::LengthDelimited) => {
                    let inner = delimited(&mut rest)?;
                    if list.replace((field, inner)).is_some() {
                        return Err(MalformedFrame::Twice);
                    }
                }
                _ => skip_field(wire, field, &mut rest, DecodeContext::default())?,
            }
        }
        Ok(Self(match list {
            None => State::Whole(bytes),
            Some((field, rest)) => State::List {
                field,
                sequence,
                rest,
            },
        }))
    }

    /// Returns the next part with at most `items_max` objects, events or outcomes; `None` behind the last.
    ///
    /// # Errors
    /// If the bytes are no frame. Nothing follows.
    pub fn next_part(&mut self, items_max: usize) -> Result<Option<Part>, MalformedFrame> {
        match std::mem::replace(&mut self.0, State::Read) {
            State::Read => Ok(None),
            State::Whole(bytes) => Ok(Some(Part {
                request: shape::read(bytes, &Shape::REQUEST)?,
                extent: Extent::Last,
            })),
            State::List {
                field,
                sequence,
                mut rest,
            } => {
                let frame = part(field, &mut rest, items_max.max(1))?;
                let request = v1::ReconcileRequest {
                    sequence,
                    frame: Some(frame),
                };
                if rest.is_empty() {
                    let extent = Extent::Last;
                    return Ok(Some(Part { request, extent }));
                }
                self.0 = State::List {
                    field,
                    sequence: 0,
                    rest,
                };
                let extent = Extent::More;
                Ok(Some(Part { request, extent }))
            }
        }
    }

    /// Returns whether all of it is read.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self.0, State::Read)
    }
}

/// Reads the next items of a list into a frame, and over what is not known behind them, so that what is left begins with an item.
fn part(list: u32, rest: &mut Bytes, items_max: usize) -> Result<Frame, MalformedFrame> {
    let mut objects = v1::SnapshotObjects::default();
    let (mut events, mut outcomes) = (v1::Events::default(), v1::Outcomes::default());
    let (mut items, mut bytes, mut others) = (0, 0, 0);
    while rest.has_remaining() {
        let mut ahead = rest.clone();
        let (field, wire) = decode_key(&mut ahead)?;
        let is_item = field == PODS || (list == SNAPSHOT_OBJECTS && field == REPLICA_SETS);
        if !is_item {
            count(&mut others)?;
            skip_field(wire, field, &mut ahead, DecodeContext::default())?;
            *rest = ahead;
            continue;
        }
        if wire != WireType::LengthDelimited {
            return Err(MalformedFrame::WireType(field));
        }
        if items == items_max || bytes >= PART_BYTES {
            break;
        }
        let item = delimited(&mut ahead)?;
        *rest = ahead;
        items += 1;
        bytes += item.len();
        match (list, field) {
            (EVENTS, _) => events.events.push(shape::read(item, &Shape::EVENT)?),
            (OUTCOMES, _) => outcomes.outcomes.push(shape::read(item, &Shape::OUTCOME)?),
            (_, PODS) => objects.pods.push(shape::read(item, &Shape::POD)?),
            _ => {
                let set = shape::read(item, &Shape::REPLICA_SET)?;
                objects.replica_sets.push(set);
            }
        }
    }
    Ok(match list {
        EVENTS => Frame::Events(events),
        OUTCOMES => Frame::Outcomes(outcomes),
        _ => Frame::SnapshotObjects(objects),
    })
}

/// Counts a field that is no item.
const fn count(fields: &mut usize) -> Result<(), MalformedFrame> {
    *fields += 1;
    match *fields > FIELDS_MAX {
        true => Err(MalformedFrame::Fields(FIELDS_MAX)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
