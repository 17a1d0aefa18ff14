//! A record in a file: a `decree.recording.v1.Record` whose frames are bytes. The session reads its frames itself, so nothing decodes a
//! frame that the session would refuse.

use bytes::Bytes;
use decree_api::recording::v1::{Closed, Drain, End, Inherited, Timeout};
use prost::{Message, Oneof};

/// One call of a session; `recording.proto` explains the fields.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    #[prost(uint64, tag = "1")]
    pub(crate) elapsed_nanos: u64,
    #[prost(sint64, tag = "2")]
    pub(crate) drift_nanos: i64,
    #[prost(oneof = "Step", tags = "3, 4, 5, 6, 7, 8, 10")]
    pub(crate) step: Option<Step>,
}

/// The kind of a call.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Step {
    /// A `ReconcileRequest`.
    #[prost(bytes = "bytes", tag = "3")]
    Frame(Bytes),
    #[prost(message, tag = "4")]
    Timeout(Timeout),
    #[prost(message, tag = "5")]
    Drain(Drain),
    #[prost(message, tag = "6")]
    Closed(Closed),
    #[prost(message, tag = "7")]
    Poll(Poll),
    #[prost(message, tag = "8")]
    End(End),
    #[prost(message, tag = "10")]
    Inherited(Inherited),
}

/// The request for a frame.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Poll {
    /// A `ReconcileResponse`.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) frame: Option<Bytes>,
}
