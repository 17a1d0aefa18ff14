//! prost for messages whose texts may hold any bytes.
//!
//! API servers keep texts that they do not check, such as annotations, as a client sent them in protobuf, and never demand UTF-8. An object
//! must stay readable whatever they hold, so each invalid part of a text reads as U+FFFD, much as in an API server's JSON.
//!
//! A message with such texts names this module in place of the crate: `#[prost(prost_path = "crate::lossy")]`.

pub(crate) use prost::{DecodeError, Message, alloc, bytes};

pub(crate) mod encoding {
    pub(crate) use prost::encoding::*;

    pub(crate) mod string {
        use prost::{
            DecodeError,
            bytes::{Buf, Bytes},
            encoding::{self, DecodeContext, WireType},
        };

        pub(crate) use prost::encoding::string::{
            encode, encode_repeated, encoded_len, encoded_len_repeated,
        };

        pub(crate) fn merge(
            wire_type: WireType,
            value: &mut String,
            buf: &mut impl Buf,
            context: DecodeContext,
        ) -> Result<(), DecodeError> {
            // Most texts are valid, and prost copies those just once.
            let chunk = buf.chunk();
            let mut rest = chunk;
            if encoding::string::merge(wire_type, value, &mut rest, context.clone()).is_ok() {
                let length = chunk.len() - rest.len();
                buf.advance(length);
                return Ok(());
            }
            let mut text = Bytes::new();
            encoding::bytes::merge(wire_type, &mut text, buf, context)?;
            *value = String::from_utf8_lossy(&text).into_owned();
            Ok(())
        }

        pub(crate) fn merge_repeated(
            wire_type: WireType,
            values: &mut Vec<String>,
            buf: &mut impl Buf,
            context: DecodeContext,
        ) -> Result<(), DecodeError> {
            let mut value = String::new();
            merge(wire_type, &mut value, buf, context)?;
            values.push(value);
            Ok(())
        }
    }
}
