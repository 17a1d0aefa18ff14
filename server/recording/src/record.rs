//! A record in a file: a `decree.recording.v1.Record` whose frames are bytes. The session reads its frames itself, so nothing decodes a
//! frame that the session would refuse.

use bytes::Bytes;
use decree::recording::v1::{Closed, Drain, End, Timeout};
use prost::{Message, Oneof};

/// One call of a session; `recording.proto` explains the fields.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Record {
    #[prost(uint64, tag = "1")]
    pub(crate) elapsed_nanos: u64,
    #[prost(sint64, tag = "2")]
    pub(crate) drift_nanos: i64,
    #[prost(bool, tag = "9")]
    pub(crate) more: bool,
    #[prost(oneof = "Step", tags = "3, 4, 5, 6, 7, 8")]
    pub(crate) step: Option<Step>,
}

/// The kind of a call.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Step {
    /// A `ReconcileRequest`, or a part of one.
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
}

/// The request for a frame.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Poll {
    /// A `ReconcileResponse`.
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) frame: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use decree::{
        recording::v1::{self as contract, record},
        v1,
    };

    use super::*;

    /// Returns each step with its counterpart in the contract.
    fn steps() -> Vec<(Step, record::Step)> {
        let request = v1::ReconcileRequest {
            sequence: 7,
            frame: Some(v1::reconcile_request::Frame::Heartbeat(
                v1::Heartbeat::default(),
            )),
        };
        let response = v1::ReconcileResponse {
            sequence: 8,
            frame: None,
        };
        let end = End {
            reason: 2,
            session_end: "an end".to_owned(),
        };
        let frame = Some(Bytes::from(response.encode_to_vec()));
        let polled = contract::Poll {
            frame: Some(response),
        };
        vec![
            (
                Step::Frame(request.encode_to_vec().into()),
                record::Step::Frame(request),
            ),
            (Step::Timeout(Timeout {}), record::Step::Timeout(Timeout {})),
            (Step::Drain(Drain {}), record::Step::Drain(Drain {})),
            (Step::Closed(Closed {}), record::Step::Closed(Closed {})),
            (Step::Poll(Poll { frame }), record::Step::Poll(polled)),
            (Step::End(end.clone()), record::Step::End(end)),
        ]
    }

    #[test]
    fn records_have_the_bytes_of_the_contract() {
        for (step, expected) in steps() {
            let ours = Record {
                elapsed_nanos: 1,
                drift_nanos: -2,
                more: true,
                step: Some(step),
            };
            let expected = contract::Record {
                elapsed_nanos: 1,
                drift_nanos: -2,
                more: true,
                step: Some(expected),
            };
            let bytes = expected.encode_to_vec();
            assert_eq!(ours.encode_to_vec(), bytes);
            assert_eq!(Record::decode(&*bytes), Ok(ours));
        }
    }
}
