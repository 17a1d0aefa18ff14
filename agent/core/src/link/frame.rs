//! Decoding of the server's frames, if their size in memory is in proportion to their bytes.
//!
//! An empty message in a list takes two bytes on the wire and hundreds in memory. So all list entries are counted before decoding.

use bytes::{Buf, Bytes};
use decree_api::v1;
use prost::{
    DecodeError, Message,
    encoding::{self, DecodeContext, WireType, decode_key, skip_field},
};
use thiserror::Error;

/// The most list entries in a frame. A pod reference takes more than 40 bytes, so a frame of an honest server reaches the maximum size
/// first.
const ENTRIES_MAX: usize = 100_000;
/// Shorter pod names are counted too; an honest name has five random characters after its `generateName`.
const NAME_BYTES_MIN: usize = 6;

/// Why bytes are not decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The bytes are no frame.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
    /// The lists have more entries than any honest frame.
    #[error("the lists of a frame have more than {ENTRIES_MAX} entries")]
    TooManyEntries,
}

/// A field to count.
enum Shape {
    /// A text, which counts if it is short.
    Text,
    /// A message, which counts, and the fields of it that are lists or contain lists.
    Message(Fields),
}

type Fields = &'static [(u32, &'static Shape)];

static PLAIN: Shape = Shape::Message(&[]);
static CREATE: Shape = Shape::Message(&[(1, &Shape::Text)]);
/// An Advise has the same shape.
static DELETE: Shape = Shape::Message(&[(1, &PLAIN)]);
static CLAIM: Shape = Shape::Message(&[(1, &PLAIN), (2, &PLAIN)]);
static STATUS: Shape = Shape::Message(&[(7, &PLAIN)]);
static WRITE_STATUS: Shape = Shape::Message(&[(1, &STATUS)]);
static BATCH: Shape = Shape::Message(&[
    (7, &CREATE),
    (8, &DELETE),
    (9, &CLAIM),
    (10, &WRITE_STATUS),
    (11, &PLAIN),
    (13, &DELETE),
]);
static BATCHES: Shape = Shape::Message(&[(1, &BATCH)]);
static REJECTED_OBJECT: Shape = Shape::Message(&[(3, &PLAIN)]);
static REJECTION: Shape = Shape::Message(&[(7, &REJECTED_OBJECT)]);
static COSTS_WANTED: Shape = Shape::Message(&[(3, &PLAIN)]);
static RESPONSE: Fields = &[(3, &BATCHES), (7, &REJECTION), (8, &COSTS_WANTED)];

/// Decodes a frame of the server.
///
/// # Errors
/// If the bytes are no frame, or would take far more memory than their size.
pub fn read(bytes: Bytes) -> Result<v1::ReconcileResponse, FrameError> {
    let mut left = ENTRIES_MAX;
    count(bytes.clone(), RESPONSE, &mut left)?;
    Ok(v1::ReconcileResponse::decode(bytes)?)
}

fn count(mut bytes: Bytes, fields: Fields, left: &mut usize) -> Result<(), FrameError> {
    while bytes.has_remaining() {
        let (field, wire) = decode_key(&mut bytes)?;
        let known = fields.iter().find(|(known, _)| *known == field);
        let Some((_, shape)) = known.filter(|_| wire == WireType::LengthDelimited) else {
            skip_field(wire, field, &mut bytes, DecodeContext::default())?;
            continue;
        };
        let mut inner = Bytes::new();
        encoding::bytes::merge(wire, &mut inner, &mut bytes, DecodeContext::default())?;
        let fields: Fields = match shape {
            Shape::Text if inner.len() >= NAME_BYTES_MIN => continue,
            Shape::Text => &[],
            Shape::Message(fields) => *fields,
        };
        *left = left.checked_sub(1).ok_or(FrameError::TooManyEntries)?;
        if !fields.is_empty() {
            count(inner, fields, left)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use decree_api::v1::{batch::Action, reconcile_response::Frame};
    use prost_types::{
        DescriptorProto, FileDescriptorSet,
        field_descriptor_proto::{Label, Type},
    };

    use super::*;

    fn frame(frame: Frame) -> v1::ReconcileResponse {
        v1::ReconcileResponse {
            sequence: 1,
            frame: Some(frame),
        }
    }

    fn batches(batches: Vec<v1::Batch>) -> v1::ReconcileResponse {
        frame(Frame::Batches(v1::Batches { batches }))
    }

    fn create(name: &str, count: usize) -> v1::ReconcileResponse {
        let create = v1::Create {
            names: vec![name.to_owned(); count],
            ..v1::Create::default()
        };
        batches(vec![v1::Batch {
            action: Some(Action::Create(create)),
            ..v1::Batch::default()
        }])
    }

    /// Rejects objects with this number of violations each.
    fn rejected(objects: usize, violations: usize) -> v1::ReconcileResponse {
        let object = v1::RejectedObject {
            violations: vec![v1::FieldViolation::default(); violations],
            ..v1::RejectedObject::default()
        };
        frame(Frame::Rejection(v1::Rejection {
            objects: vec![object; objects],
            ..v1::Rejection::default()
        }))
    }

    fn reading(frame: &v1::ReconcileResponse) -> Result<v1::ReconcileResponse, FrameError> {
        read(frame.encode_to_vec().into())
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        for frame in [
            create("a-x7k2p", ENTRIES_MAX + 1),
            rejected(100, 0),
            frame(Frame::Heartbeat(v1::Heartbeat::default())),
            v1::ReconcileResponse::default(),
        ] {
            assert_eq!(reading(&frame), Ok(frame));
        }
    }

    /// `each_list_of_a_frame_counts` shows that no list of the contract is left out.
    #[test]
    fn lists_of_countless_empty_messages_are_not_built() {
        let many = ENTRIES_MAX + 1;
        let frames = [
            batches(vec![v1::Batch::default(); many]),
            create("", many),
            rejected(1, many),
            rejected(many, 0),
        ];
        for (at, frame) in frames.iter().enumerate() {
            let read = reading(frame);
            assert_eq!(read, Err(FrameError::TooManyEntries), "frame {at}");
        }
    }

    /// Checks the fields to count against their message: they are each list, and each message that contains lists.
    fn check(messages: &Messages, name: &str, fields: Fields, within: &[&str]) -> bool {
        if within.contains(&name) {
            return true;
        }
        let within = [within, &[name]].concat();
        let mut has_lists = false;
        for field in &messages[name].field {
            let inner = field.type_name().strip_prefix('.');
            let inner = inner.filter(|inner| messages.contains_key(*inner));
            let number = u32::try_from(field.number()).expect("numbers are above 0");
            let known = fields.iter().find(|(known, _)| *known == number);
            let is_list = field.label() == Label::Repeated && field.r#type() >= Type::String;
            let fields: Fields = match known {
                Some((_, Shape::Message(fields))) => *fields,
                Some((_, Shape::Text)) | None => &[],
            };
            let goes_on = inner.is_some_and(|inner| check(messages, inner, fields, &within));
            let counts = is_list || goes_on;
            assert_eq!(counts, known.is_some(), "{name}.{}", field.name());
            has_lists |= counts;
        }
        has_lists
    }

    type Messages = HashMap<String, DescriptorProto>;

    #[test]
    fn each_list_of_a_frame_counts() {
        let files = FileDescriptorSet::decode(decree_api::FILE_DESCRIPTOR_SET);
        let files = files.expect("the contract was compiled from it").file;
        let messages = files.into_iter().flat_map(|file| {
            let package = file.package().to_owned();
            let named =
                move |message: DescriptorProto| (format!("{package}.{}", message.name()), message);
            file.message_type.into_iter().map(named)
        });
        let messages = messages.collect();
        let response = "decree.v1.ReconcileResponse";
        assert!(check(&messages, response, RESPONSE, &[]));
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for bytes in [
            &[0xff][..],
            &[0x1a],
            &[0x08],
            &[0x0b, 0x0b],
            &[0x1a, 0x05, 0x0a],
        ] {
            let read = read(Bytes::from_static(bytes));
            assert!(matches!(read, Err(FrameError::Malformed(_))), "{bytes:?}");
        }
    }
}
