//! Writes messages of the contract from borrowed values, byte for byte as prost does: fields in the order of their numbers, and none that
//! has the value which is implied where it is absent.

use std::{fmt::Display, io::Write as _};

use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

/// Writes the fields of one message behind what stands in a vector.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

// === impl Writer ===

impl Writer<'_> {
    /// Writes a number, unless it is 0. A negative one is written as its two's complement.
    pub(crate) fn number(&mut self, field: u32, number: u64) {
        if number != 0 {
            encode_key(field, WireType::Varint, self.0);
            encode_varint(number, self.0);
        }
    }

    /// Writes a text, unless it is empty.
    pub(crate) fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.item(field, text);
        }
    }

    /// Writes a text of a list.
    pub(crate) fn item(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Writes bytes: of a text, or of a message that has been written.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        encode_key(field, WireType::LengthDelimited, self.0);
        encode_varint(bytes.len() as u64, self.0);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a value as it is displayed, if there is one.
    pub(crate) fn displayed(&mut self, field: u32, value: Option<impl Display>) {
        if let Some(value) = value {
            self.nested(field, |writer| {
                write!(writer.0, "{value}").expect("a vector takes all");
            });
        }
    }

    /// Writes a message that has been built.
    pub(crate) fn message(&mut self, field: u32, message: &impl Message) {
        encode_key(field, WireType::LengthDelimited, self.0);
        message
            .encode_length_delimited(self.0)
            .expect("a vector takes all");
    }

    /// Writes a message whose fields `write` writes. Its length is put before it when it is known: most are so short that it has one byte,
    /// and longer ones are moved.
    pub(crate) fn nested(&mut self, field: u32, write: impl FnOnce(&mut Writer<'_>)) {
        encode_key(field, WireType::LengthDelimited, self.0);
        let before = self.0.len();
        self.0.push(0);
        let start = self.0.len();
        write(&mut Writer(self.0));
        let (end, length) = (self.0.len(), (self.0.len() - start) as u64);
        let more = encoded_len_varint(length) - 1;
        if more > 0 {
            self.0.resize(end + more, 0);
            self.0.copy_within(start..end, start + more);
        }
        let mut place = &mut self.0[before..start + more];
        encode_varint(length, &mut place);
    }
}

#[cfg(test)]
mod tests {
    use decree::v1;

    use super::*;

    #[test]
    fn length_of_any_size_stands_before_its_message() {
        for length in [
            0, 1, 124, 125, 126, 127, 128, 129, 16_379, 16_384, 2_100_000,
        ] {
            let cause = "x".repeat(length);
            let resync = v1::Resync { kind: 0, cause };
            let (mut written, mut expected) = (vec![7], vec![7]);
            Writer(&mut written).nested(3, |writer| writer.text(2, &resync.cause));
            Writer(&mut expected).message(3, &resync);
            assert!(written == expected, "{length}");
        }
    }
}
