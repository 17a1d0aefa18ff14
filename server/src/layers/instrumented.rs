//! Counts calls as grpc-prometheus does: started at the first byte, handled when the status is known, and how long it was until then.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use http::Response;
use http_body::{Frame, SizeHint};
use tonic::{Code, Status, body::Body, codegen::Bytes};

use crate::metrics::Metrics;

/// Every method that is counted under its own name, with its shape; all else is one series.
const METHODS: [(&str, &str, &str); 14] = [
    ("decree.v1.DecisionService", "Reconcile", "bidi_stream"),
    ("decree.v1.DecisionService", "RenewSession", "unary"),
    ("decree.v1.DecisionService", "Decide", "unary"),
    ("decree.v1.DecisionService", "Simulate", "unary"),
    ("decree.v1.InspectionService", "ListReplicaSets", "unary"),
    ("decree.v1.InspectionService", "GetReplicaSet", "unary"),
    (
        "decree.v1.InspectionService",
        "WatchDecisions",
        "server_stream",
    ),
    ("decree.v1.InspectionService", "ListSessions", "unary"),
    ("decree.v1.InspectionService", "ListDifferences", "unary"),
    ("grpc.health.v1.Health", "Check", "unary"),
    ("grpc.health.v1.Health", "List", "unary"),
    ("grpc.health.v1.Health", "Watch", "server_stream"),
    (
        "grpc.reflection.v1.ServerReflection",
        "ServerReflectionInfo",
        "bidi_stream",
    ),
    (
        "grpc.reflection.v1alpha.ServerReflection",
        "ServerReflectionInfo",
        "bidi_stream",
    ),
];
const OTHER: (&str, &str, &str) = ("unknown", "unknown", "unary");

/// A call that was counted as started and is counted as handled when this is dropped.
#[derive(Debug)]
pub(crate) struct InstrumentedCall {
    metrics: Metrics,
    method: &'static (&'static str, &'static str, &'static str),
    code: Code,
    started: Instant,
}

/// A response's body that is watched for its status.
struct Watched {
    body: Body,
    call: InstrumentedCall,
}

// === impl InstrumentedCall ===

impl InstrumentedCall {
    /// Counts a call as started.
    pub(crate) fn start(metrics: &Metrics, path: &str) -> Self {
        let named = |(service, method, _): &&(&str, &str, &str)| {
            path.strip_prefix('/').and_then(|path| path.split_once('/')) == Some((service, method))
        };
        let method = METHODS.iter().find(named).unwrap_or(&OTHER);
        metrics.grpc_started.get_or_create(&labels(method)).inc();
        Self {
            metrics: metrics.clone(),
            method,
            code: Code::Cancelled,
            started: Instant::now(),
        }
    }

    /// Watches a response until its status is known.
    pub(crate) fn watch(mut self, response: Response<Body>) -> Response<Body> {
        if let Some(status) = Status::from_header_map(response.headers()) {
            self.code = status.code();
            return response;
        }
        response.map(|body| Body::new(Watched { body, call: self }))
    }
}

fn labels(
    method: &(&'static str, &'static str, &'static str),
) -> [(&'static str, &'static str); 3] {
    [
        ("grpc_type", method.2),
        ("grpc_service", method.0),
        ("grpc_method", method.1),
    ]
}

impl Drop for InstrumentedCall {
    fn drop(&mut self) {
        let handling = self
            .metrics
            .grpc_handling
            .get_or_create(&labels(self.method));
        handling.observe(self.started.elapsed().as_secs_f64());
        drop(handling);
        let [kind, service, method] = labels(self.method);
        let labels = [kind, service, method, ("grpc_code", code_name(self.code))];
        self.metrics.grpc_handled.get_or_create(&labels).inc();
    }
}

// === impl Watched ===

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(status) = frame.trailers_ref().and_then(Status::from_header_map)
        {
            self.call.code = status.code();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
