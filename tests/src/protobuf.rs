//! Fields of protobuf, for messages whose types are not generated here, such as those of Kubernetes' `generated.proto`.

use prost::encoding::{WireType, encode_key, encode_varint};

/// A field of bytes: its number, length and content.
pub fn field(number: u32, content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut bytes);
    encode_varint(content.as_ref().len() as u64, &mut bytes);
    bytes.extend_from_slice(content.as_ref());
    bytes
}

/// A field with a number.
pub fn number(field: u32, value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(field, WireType::Varint, &mut bytes);
    encode_varint(value.cast_unsigned(), &mut bytes);
    bytes
}
