//! The encoding of a session's frames. Frames of the server are decoded by [`frame::read`], which bounds their memory.

use agent_core::frame;
use decree::v1;
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder},
};
use tonic_prost::ProstCodec;

#[derive(Debug, Default)]
pub(super) struct FrameCodec;

#[derive(Debug)]
pub(super) struct FrameDecoder;

impl Codec for FrameCodec {
    type Encode = v1::ReconcileRequest;
    type Decode = v1::ReconcileResponse;
    type Encoder = <ProstCodec<v1::ReconcileRequest, ()> as Codec>::Encoder;
    type Decoder = FrameDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<v1::ReconcileRequest, ()>::default().encoder()
    }

    fn decoder(&mut self) -> FrameDecoder {
        FrameDecoder
    }
}

impl Decoder for FrameDecoder {
    type Item = v1::ReconcileResponse;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let bytes = bytes::Buf::copy_to_bytes(message, bytes::Buf::remaining(message));
        let read = frame::read(bytes).map(Some);
        read.map_err(|error| Status::internal(format!("the server broke the protocol: {error}")))
    }
}
