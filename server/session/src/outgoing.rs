//! A frame for the agent. Batches are bytes already: they are written from what the core decided, without a message in between.

use bytes::BufMut;
use decree::v1::{self, reconcile_response::Frame};
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint},
};

use crate::wire::{EncodedBatch, Writer};

/// The field of `Batches` that has them.
const BATCH: u32 = 1;
/// The fields of `ReconcileResponse`.
const SEQUENCE: u32 = 1;
const BATCHES: u32 = 3;

/// A frame as it leaves.
#[derive(Clone, Debug)]
pub struct OutgoingFrame {
    sequence: u64,
    content: Content,
}

/// What a frame says.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Message(Option<Frame>),
    Batches(EncodedBatches),
}

/// The bytes of a message `Batches`.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedBatches {
    bytes: Vec<u8>,
    is_traced: bool,
}

// === impl OutgoingFrame ===

impl OutgoingFrame {
    pub(crate) const fn new(sequence: u64, content: Content) -> Self {
        Self { sequence, content }
    }

    /// Returns whether it has batches.
    #[must_use]
    pub const fn has_batches(&self) -> bool {
        matches!(
            &self.content,
            Content::Batches(_) | Content::Message(Some(Frame::Batches(_)))
        )
    }

    /// Returns whether it may have a batch that has a place in a trace.
    #[must_use]
    pub const fn is_traced(&self) -> bool {
        match &self.content {
            Content::Batches(batches) => batches.is_traced,
            Content::Message(frame) => matches!(frame, Some(Frame::Batches(_))),
        }
    }

    /// Writes it: the same bytes as those of its message.
    pub fn encode(&self, out: &mut impl BufMut) {
        if self.sequence != 0 {
            encode_key(SEQUENCE, WireType::Varint, out);
            encode_varint(self.sequence, out);
        }
        match &self.content {
            Content::Message(Some(frame)) => frame.encode(out),
            Content::Message(None) => {}
            Content::Batches(EncodedBatches { bytes, .. }) => {
                encode_key(BATCHES, WireType::LengthDelimited, out);
                encode_varint(bytes.len() as u64, out);
                out.put_slice(bytes);
            }
        }
    }

    /// Returns it as a message.
    #[must_use]
    pub fn into_message(self) -> v1::ReconcileResponse {
        let frame = match self.content {
            Content::Message(frame) => frame,
            Content::Batches(EncodedBatches { bytes, .. }) => {
                let batches = v1::Batches::decode(&*bytes);
                Some(Frame::Batches(batches.expect("batches are messages")))
            }
        };
        v1::ReconcileResponse {
            sequence: self.sequence,
            frame,
        }
    }
}

impl From<v1::ReconcileResponse> for OutgoingFrame {
    fn from(message: v1::ReconcileResponse) -> Self {
        let v1::ReconcileResponse { sequence, frame } = message;
        Self::new(sequence, Content::Message(frame))
    }
}

// === impl Content ===

impl From<Frame> for Content {
    fn from(frame: Frame) -> Self {
        Self::Message(Some(frame))
    }
}

impl From<EncodedBatches> for Content {
    fn from(batches: EncodedBatches) -> Self {
        Self::Batches(batches)
    }
}

// === impl EncodedBatches ===

impl EncodedBatches {
    /// Adds a batch behind the others.
    pub(crate) fn push(&mut self, batch: &EncodedBatch) {
        let EncodedBatch { bytes, is_traced } = batch;
        let length = bytes.len();
        self.bytes
            .reserve(1 + encoded_len_varint(length as u64) + length);
        Writer(&mut self.bytes).bytes(BATCH, bytes);
        self.is_traced |= is_traced;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
