//! Reads the fields of a message from its bytes.

use prost::{
    DecodeError,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use thiserror::Error;

/// The maximum size of an object that is read; the limits of its fields in docs/protocol.md leave room. It limits the memory of one object:
/// an entry of a list takes two bytes on the wire and a hundred in memory.
pub const OBJECT_BYTES_MAX: usize = 512 << 10;

/// Why bytes are no message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MalformedFrame {
    /// They cannot be decoded.
    #[error(transparent)]
    Message(#[from] DecodeError),
    /// A length is larger than the rest of the message.
    #[error("a field is longer than its message")]
    Short,
    /// A field that must be a message is something else.
    #[error("field {0} has another wire type")]
    WireType(u32),
    /// A frame has several contents.
    #[error("a frame has more than one content")]
    Twice,
    /// An event or outcome is larger than any object, and has unknown or repeated fields.
    #[error("an event or outcome of {0} bytes has unknown or repeated fields")]
    Large(usize),
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of variable length.
    Number(u64),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
    /// Any other type; this contract has none.
    Other,
}

/// The fields of the message in these bytes, in their order, up to the first bytes that are no field.
#[derive(Clone, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

/// Takes the next field off the front of a message, and returns its number and value.
fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<(u32, Value<'a>), MalformedFrame> {
    let (field, wire) = decode_key(bytes)?;
    let value = match wire {
        WireType::Varint => Value::Number(decode_varint(bytes)?),
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(bytes)?).unwrap_or(usize::MAX);
            let (inner, rest) = bytes
                .split_at_checked(length)
                .ok_or(MalformedFrame::Short)?;
            *bytes = rest;
            Value::Bytes(inner)
        }
        WireType::SixtyFourBit
        | WireType::ThirtyTwoBit
        | WireType::StartGroup
        | WireType::EndGroup => {
            skip_field(wire, field, bytes, DecodeContext::default())?;
            Value::Other
        }
    };
    Ok((field, value))
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), MalformedFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = (!self.0.is_empty()).then(|| next_field(&mut self.0));
        if let Some(Err(_)) = field {
            self.0 = &[];
        }
        field
    }
}
