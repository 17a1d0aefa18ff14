//! Bodies of requests that a client of gRPC would not send.

use http_body::Frame;
use http_body_util::StreamBody;
use tokio_stream::{StreamExt as _, iter, pending};
use tonic::{Status, body::Body, codegen::Bytes};

/// Returns a body that sends these pieces, and then ends or stays open.
pub fn in_pieces<P>(pieces: P, ends: bool) -> Body
where
    P: IntoIterator<Item = Bytes>,
    P::IntoIter: Send + 'static,
{
    let frames = iter(pieces).map(|piece| Ok::<_, Status>(Frame::data(piece)));
    if ends {
        Body::new(StreamBody::new(frames))
    } else {
        Body::new(StreamBody::new(frames.chain(pending())))
    }
}
