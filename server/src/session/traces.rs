//! The server's spans: one for each decision.

use std::{sync::Arc, time::Duration};

use decree::v1::{self, reconcile_response};
use server_session::SessionIdentity;
use service::otlp::{Span, SpanKind, Tracer};

/// Makes the spans of one session.
#[derive(Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    identity: Arc<SessionIdentity>,
}

/// Unfinished spans, each with its batch. They end on drop.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<(u64, Span)>);

impl Traces {
    pub(crate) fn new(tracer: Tracer, identity: &Arc<SessionIdentity>) -> Self {
        let identity = Arc::clone(identity);
        Self { tracer, identity }
    }

    /// Starts a span for each batch of a frame. The spans began `elapsed` ago, and the operations of a batch become children of its span.
    pub(crate) fn decide(&self, frame: &mut v1::ReconcileResponse, elapsed: Duration) -> Spans {
        let mut spans = Spans::default();
        let Some(reconcile_response::Frame::Batches(batches)) = &mut frame.frame else {
            return spans;
        };
        for batch in &mut batches.batches {
            let span = self.tracer.root(SpanKind::Producer, "decide", elapsed);
            // Another one may be sampled.
            let Some(mut span) = span else { continue };
            span.text("decree.session.id", &self.identity.session_id);
            span.text("k8s.cluster.name", self.identity.cluster());
            span.number("decree.batch.id", batch.id);
            if let Some(reason) = batch.reasons.first() {
                span.text("decree.rule", reason.rule().as_str_name());
                span.text("decree.reason", &reason.detail);
            }
            if let Some(set) = &batch.replica_set {
                span.text("k8s.namespace.name", &set.namespace);
                span.text("k8s.replicaset.name", &set.name);
                span.text("k8s.replicaset.uid", &set.uid);
            }
            batch.traceparent = span.context().to_string();
            spans.0.push((batch.id, span));
        }
        spans
    }
}

impl Spans {
    /// The trace id of the first span.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let (_, span) = self.0.first()?;
        Some(span.context().trace_id_text())
    }

    /// The log fields for the trace of a batch's decision; empty without a trace.
    pub(crate) fn fields_of(&self, batch: u64) -> tracing::Span {
        let mut decisions = self.0.iter();
        let span = decisions.find(|(it, _)| *it == batch);
        span.map_or_else(tracing::Span::none, |(_, span)| {
            let place = span.context();
            let (trace_id, span_id) = (place.trace_id_text(), place.span_id_text());
            tracing::error_span!("trace", trace_id, span_id)
        })
    }
}
