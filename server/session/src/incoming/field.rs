//! Takes fields out of bytes.

use bytes::Bytes;
use prost::{DecodeError, encoding::decode_varint};
use thiserror::Error;

/// Why bytes are no frame.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MalformedFrame {
    /// They are no message.
    #[error(transparent)]
    Message(#[from] DecodeError),
    /// A length is larger than what is left.
    #[error("a field is longer than its message")]
    Short,
    /// A field that must be a message is something else.
    #[error("field {0} has another wire type")]
    WireType(u32),
    /// A message has so many fields that reading them would take too long.
    #[error("a message has more than {0} fields")]
    Fields(usize),
    /// A frame has several lists.
    #[error("a frame has more than one content")]
    Twice,
}

/// Takes what stands behind a length.
pub(super) fn delimited(bytes: &mut Bytes) -> Result<Bytes, MalformedFrame> {
    let length = usize::try_from(decode_varint(bytes)?).unwrap_or(usize::MAX);
    if length > bytes.len() {
        return Err(MalformedFrame::Short);
    }
    Ok(bytes.split_to(length))
}

/// Takes what stands behind a length.
pub(super) fn delimited_slice<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], MalformedFrame> {
    let length = usize::try_from(decode_varint(bytes)?).unwrap_or(usize::MAX);
    let (inner, rest) = bytes
        .split_at_checked(length)
        .ok_or(MalformedFrame::Short)?;
    *bytes = rest;
    Ok(inner)
}
