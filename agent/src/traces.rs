//! The agent's spans: one for each call to the cluster, as a child of the decision that it serves.

use agent_core::api::{ApiError, Call};
use decree::TraceContext;
use service::otlp::{Span, SpanKind, Tracer};

/// A call to the cluster, from its start to its answer.
#[derive(Debug)]
pub(crate) struct CallSpan(Option<Span>);

// === impl CallSpan ===

impl CallSpan {
    /// Begins a call with the trace context of its decision, if it has one.
    pub(crate) fn begin(tracer: &Tracer, call: &Call, trace: Option<TraceContext>) -> Self {
        let name = call.request.verb();
        Self(trace.and_then(|it| tracer.child(it, SpanKind::Client, name)))
    }

    /// The context for children of this span; `None` if the span is not recorded.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(Span::context)
    }

    /// Ends the span with the answer.
    pub(crate) fn end<T>(self, answer: &Result<T, ApiError>) {
        if let (Some(mut span), Err(error)) = (self.0, answer) {
            span.fail(&error.to_string());
        }
    }
}
