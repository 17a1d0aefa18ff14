//! The encoding of a session's frames. Frames of the server are decoded by [`frame::read`], which bounds their memory.

use agent_core::link::frame;
use decree::v1;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder},
};
use tonic_prost::ProstCodec;

#[derive(Debug)]
pub(super) struct FrameCodec;

impl Codec for FrameCodec {
    type Encode = v1::ReconcileRequest;
    type Decode = v1::ReconcileResponse;
    type Encoder = <ProstCodec<v1::ReconcileRequest, ()> as Codec>::Encoder;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<v1::ReconcileRequest, ()>::default().encoder()
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Decoder for FrameCodec {
    type Item = v1::ReconcileResponse;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let bytes = bytes::Buf::copy_to_bytes(message, bytes::Buf::remaining(message));
        let read = frame::read(bytes).map(Some);
        read.map_err(|error| Status::internal(format!("the server broke the protocol: {error}")))
    }
}
