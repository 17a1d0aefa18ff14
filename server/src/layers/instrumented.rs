//! Counts calls as grpc-prometheus does: started at the first byte, handled when the status is known, and the time between them.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use http::{HeaderMap, Response};
use http_body::Frame;
use server_access::method::{self, SESSION, Shape};
use service::admission::ActiveCall;
use tonic::{Code, Status, body::Body, codegen::Bytes};

use crate::{
    capacity::Slot,
    error::{Refusal, code_names},
    peer::ConnectionPeer,
    shared::Shared,
};

/// All methods that are not served share one series.
const OTHER: (&str, Shape) = ("/unknown/unknown", Shape::Unary);

/// A call that is counted as started now, and as handled on drop. It has its resources until its response has been sent.
#[derive(Debug)]
pub(super) struct InstrumentedCall {
    pub(super) shared: Arc<Shared>,
    method: (&'static str, Shape),
    /// The code of the status, once that is known.
    pub(super) code: Code,
    started: Instant,
    /// The slot of the call, if it needs one.
    pub(super) slot: Option<Slot>,
    /// The mark of the call on its connection.
    active: Option<ActiveCall>,
}

impl InstrumentedCall {
    pub(super) fn start(shared: &Arc<Shared>, path: &str) -> Self {
        let method = method::find(path).map_or(OTHER, |it| (it.path, it.shape));
        let started = &shared.metrics.grpc_started;
        started.get_or_create(&labels(method)).inc();
        Self {
            shared: Arc::clone(shared),
            method,
            code: Code::Cancelled,
            started: Instant::now(),
            slot: None,
            active: None,
        }
    }

    /// Takes the slot of the call. Sessions have separate slots.
    pub(super) fn begin(&mut self, peer: &ConnectionPeer) -> Result<(), Refusal> {
        if let Some(ended) = peer.proved.has_ended() {
            return Err(Refusal::CertificateEnded(ended));
        }
        if !self.is_session() {
            self.slot = Some(peer.take(&self.shared.calls, 1)?);
        }
        self.active = Some(peer.activity.begin_call());
        Ok(())
    }

    pub(super) fn is_session(&self) -> bool {
        self.method.0 == SESSION
    }

    /// Whether the caller sends one message, which is not known of a method that is not served.
    pub(super) fn has_one_message(&self) -> bool {
        self.method != OTHER && self.method.1 != Shape::BidiStream
    }

    /// The end of a response that ends early.
    pub(super) fn end(&mut self, refusal: Refusal) -> Frame<Bytes> {
        let status = Status::from(refusal);
        self.code = status.code();
        let mut trailers = HeaderMap::new();
        // Metadata that do not fit into a header are left out. The code always fits.
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
    }

    pub(super) fn refuse(mut self, refusal: Refusal) -> Response<Body> {
        let status = Status::from(refusal);
        self.code = status.code();
        status.into_http()
    }
}

/// Ready when the holder of a slot must end; never without a slot.
pub(super) fn poll_end(slot: &mut Option<Slot>, cx: &mut Context<'_>) -> Poll<Refusal> {
    let slot = slot.as_mut();
    slot.map_or(Poll::Pending, |slot| slot.poll_end(cx))
}

fn labels((path, shape): (&'static str, Shape)) -> [(&'static str, &'static str); 3] {
    let (service, method) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or_default();
    [
        ("grpc_type", shape.as_str()),
        ("grpc_service", service),
        ("grpc_method", method),
    ]
}

impl Drop for InstrumentedCall {
    fn drop(&mut self) {
        let metrics = &self.shared.metrics;
        let handling = metrics.grpc_handling.get_or_create(&labels(self.method));
        handling.observe(self.started.elapsed().as_secs_f64());
        drop(handling);
        let [kind, service, method] = labels(self.method);
        let labels = [
            kind,
            service,
            method,
            ("grpc_code", code_names(self.code).0),
        ];
        metrics.grpc_handled.get_or_create(&labels).inc();
    }
}
