//! How many entries the lists inside an object may have before the rest of them is left out unread.
//!
//! Each bound is one more than what [`crate::wire`] accepts, so what is cut is refused for its number.

use bytes::{Buf, BufMut, Bytes};
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field},
};

use super::field::{MalformedFrame, delimited};

/// An object of fewer bytes is read as it is.
const SMALL: usize = 16 << 10;

/// What is bounded of a message.
#[derive(Debug)]
pub(super) struct Shape(&'static [Bounded]);

/// A field that is bounded, or has bounded fields.
#[derive(Debug)]
struct Bounded {
    field: u32,
    /// How many of it are read.
    entries_max: usize,
    /// What is bounded of each; it is kept as it is where nothing is.
    inner: Option<&'static Shape>,
}

// === impl Shape ===

impl Shape {
    const EXPRESSION: Self = Self(&[Bounded::list(3, 10_001)]);
    const SELECTOR: Self = Self(&[
        Bounded::list(1, 1_001),
        Bounded {
            field: 2,
            entries_max: 1_001,
            inner: Some(&Self::EXPRESSION),
        },
    ]);
    const STATUS: Self = Self(&[Bounded::list(7, 101)]);
    pub(super) const POD: Self = Self(&[Bounded::list(5, 1_001)]);
    pub(super) const REPLICA_SET: Self = Self(&[
        Bounded::one(10, &Self::SELECTOR),
        Bounded::list(11, 1_001),
        Bounded::one(12, &Self::STATUS),
    ]);
    pub(super) const EVENT: Self = Self(&[
        Bounded::one(1, &Self::POD),
        Bounded::one(2, &Self::REPLICA_SET),
    ]);
    /// The first frame. What is not known of a Hello is counted, so that many entries are read.
    pub(super) const REQUEST: Self = Self(&[Bounded::one(2, &Self(&[Bounded::list(3, 500_000)]))]);
    const DONE: Self = Self(&[
        Bounded::one(3, &Self::POD),
        Bounded::one(4, &Self::REPLICA_SET),
    ]);
    pub(super) const OUTCOME: Self = Self(&[Bounded::one(3, &Self::DONE)]);
}

// === impl Bounded ===

impl Bounded {
    const fn list(field: u32, entries_max: usize) -> Self {
        Self {
            field,
            entries_max,
            inner: None,
        }
    }

    /// Describes a message that is there once: of several, which merge into one, the first few are read.
    const fn one(field: u32, inner: &'static Shape) -> Self {
        Self {
            field,
            entries_max: 16,
            inner: Some(inner),
        }
    }
}

/// Reads a message, without the entries beyond its bounds.
pub(super) fn read<M: Message + Default>(bytes: Bytes, shape: &Shape) -> Result<M, MalformedFrame> {
    if bytes.len() < SMALL {
        return Ok(M::decode(bytes)?);
    }
    Ok(M::decode(&*cut(bytes, shape)?)?)
}

fn cut(mut bytes: Bytes, Shape(fields): &Shape) -> Result<Vec<u8>, MalformedFrame> {
    let mut counts = vec![0_usize; fields.len()];
    let mut kept = Vec::new();
    while bytes.has_remaining() {
        let begin = bytes.clone();
        let (field, wire) = decode_key(&mut bytes)?;
        let Some(at) = fields.iter().position(|bounded| bounded.field == field) else {
            skip_field(wire, field, &mut bytes, DecodeContext::default())?;
            kept.put(begin.slice(..begin.len() - bytes.len()));
            continue;
        };
        if wire != WireType::LengthDelimited {
            return Err(MalformedFrame::WireType(field));
        }
        let inner = delimited(&mut bytes)?;
        counts[at] += 1;
        if counts[at] > fields[at].entries_max {
            continue;
        }
        let inner = match fields[at].inner {
            Some(shape) => cut(inner, shape)?.into(),
            None => inner,
        };
        encode_key(field, wire, &mut kept);
        encode_varint(inner.len() as u64, &mut kept);
        kept.put(inner);
    }
    Ok(kept)
}
