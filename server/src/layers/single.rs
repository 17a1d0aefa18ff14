//! Calls with one message: the whole message is received before it is read, within a deadline, and no second one may follow.

use std::future::poll_fn;

use http::{Request, Response};
use http_body_util::Full;
use service::admission::deadline::CallDeadline;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, body::Body};

use super::{instrumented::poll_end, received::Received};
use crate::{
    capacity::Slot,
    error::{Refusal, from_transport},
};

/// The answer of `call`, or a refusal at `until`, or of a message of more than `max` bytes.
pub(super) async fn answer<E, F: Future<Output = Result<Response<Body>, E>>>(
    max: usize,
    call: impl FnOnce(Request<Body>) -> F,
    request: Request<Received>,
    until: Instant,
    slot: &mut Option<Slot>,
) -> Result<Response<Body>, E> {
    if until <= Instant::now() {
        return Ok(refuse(Refusal::DeadlineExceeded));
    }
    let served = async {
        let (mut head, body) = request.into_parts();
        let (bytes, mut held) = match body.whole(max).await {
            Ok(received) => received,
            Err(status) => return Ok(refuse(from_transport(&status, max))),
        };
        let taken = poll_fn(|cx| poll_end(&mut held, cx));
        head.extensions.insert(CallDeadline(until));
        let body = Body::new(Full::new(bytes));
        tokio::select! {
            biased;
            answered = call(Request::from_parts(head, body)) => answered,
            refusal = taken => Ok(refuse(refusal)),
        }
    };
    tokio::select! {
        biased;
        answered = served => answered,
        refusal = poll_fn(|cx| poll_end(slot, cx)) => Ok(refuse(refusal)),
        () = sleep_until(until) => Ok(refuse(Refusal::DeadlineExceeded)),
    }
}

fn refuse(refusal: Refusal) -> Response<Body> {
    Status::from(refusal).into_http()
}
