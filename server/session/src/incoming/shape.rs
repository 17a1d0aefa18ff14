//! How many entries the lists inside an object may have before the rest of the message is left out unread.
//!
//! Each bound is one more than what [`crate::wire`] accepts, so what is cut is refused for its number, whatever would have followed.

use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field},
};

use super::field::{MalformedFrame, delimited_slice};

/// An object of fewer bytes is read as it is.
pub(crate) const SMALL: usize = 16 << 10;

/// How many fields an object may have, with those inside of it; what is accepted has fewer than 16,000.
const FIELDS_MAX: usize = 20_000;

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
    scope: Scope,
}

/// What the entries of a list are counted in.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// In the message that has the list.
    Parent,
    /// In the whole object, however many lists there are.
    Object,
}

/// What was counted of an object.
#[derive(Debug, Default)]
struct Cut {
    fields: usize,
    /// The entries of the lists that are counted in the whole object.
    entries: usize,
}

// === impl Shape ===

impl Shape {
    const EXPRESSION: Self = Self(&[Bounded {
        scope: Scope::Object,
        ..Bounded::list(3, 10_001)
    }]);
    const SELECTOR: Self = Self(&[
        Bounded::list(1, 1_001),
        Bounded {
            field: 2,
            entries_max: 1_001,
            inner: Some(&Self::EXPRESSION),
            scope: Scope::Parent,
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
    /// The first frame: a Hello with its capabilities.
    pub(super) const REQUEST: Self = Self(&[Bounded::one(2, &Self(&[Bounded::list(3, 1_001)]))]);
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
            scope: Scope::Parent,
        }
    }

    /// Describes a message that is there once: of several, which merge into one, the first few are read.
    const fn one(field: u32, inner: &'static Shape) -> Self {
        Self {
            field,
            entries_max: 16,
            inner: Some(inner),
            scope: Scope::Parent,
        }
    }
}

/// Reads a message, without the entries beyond its bounds.
pub(super) fn read<M: Message + Default>(bytes: &[u8], shape: &Shape) -> Result<M, MalformedFrame> {
    if bytes.len() < SMALL {
        return Ok(M::decode(bytes)?);
    }
    Ok(M::decode(&*Cut::default().message(bytes, shape)?)?)
}

// === impl Cut ===

impl Cut {
    fn message(
        &mut self,
        mut bytes: &[u8],
        Shape(bounds): &Shape,
    ) -> Result<Vec<u8>, MalformedFrame> {
        let mut counts = vec![0_usize; bounds.len()];
        let mut kept = Vec::new();
        while !bytes.is_empty() {
            self.count_field()?;
            let begin = bytes;
            let (field, wire) = decode_key(&mut bytes)?;
            let Some(at) = bounds.iter().position(|bounded| bounded.field == field) else {
                skip_field(wire, field, &mut bytes, DecodeContext::default())?;
                kept.extend_from_slice(&begin[..begin.len() - bytes.len()]);
                continue;
            };
            if wire != WireType::LengthDelimited {
                return Err(MalformedFrame::WireType(field));
            }
            let inner = delimited_slice(&mut bytes)?;
            let Bounded {
                entries_max,
                inner: shape,
                scope,
                ..
            } = &bounds[at];
            let entries = match scope {
                Scope::Parent => &mut counts[at],
                Scope::Object => &mut self.entries,
            };
            *entries += 1;
            if *entries > *entries_max {
                break;
            }
            encode_key(field, wire, &mut kept);
            match shape {
                Some(shape) => put(&self.message(inner, shape)?, &mut kept),
                None => put(inner, &mut kept),
            }
        }
        Ok(kept)
    }

    fn count_field(&mut self) -> Result<(), MalformedFrame> {
        self.fields += 1;
        match self.fields > FIELDS_MAX {
            true => Err(MalformedFrame::Fields(FIELDS_MAX)),
            false => Ok(()),
        }
    }
}

/// Appends a text or a message behind its length.
fn put(bytes: &[u8], kept: &mut Vec<u8>) {
    encode_varint(bytes.len() as u64, kept);
    kept.extend_from_slice(bytes);
}
