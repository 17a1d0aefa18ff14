//! The server's spans for the frames of a session: for each event or outcome that it takes, and for each decision.

use std::{sync::Arc, time::Duration};

use decree::{
    TraceContext,
    v1::{self, reconcile_response},
};
use otlp::{Span, SpanKind, Tracer};
use server_session::{IncomingFrame, SessionIdentity};
use tokio::time::Instant;

/// Makes the spans of one session.
#[derive(Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    identity: Arc<SessionIdentity>,
}

/// Unfinished spans. They end on drop.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<(Option<u64>, Span)>);

// === impl Traces ===

impl Traces {
    pub(crate) fn new(tracer: Tracer, identity: &Arc<SessionIdentity>) -> Self {
        let identity = Arc::clone(identity);
        Self { tracer, identity }
    }

    /// Starts spans for the events and outcomes of a frame, from its arrival on. Decisions on them become children of these spans.
    pub(crate) fn receive(&self, frame: &mut IncomingFrame, arrived: Option<Instant>) -> Spans {
        let mut spans = Spans::default();
        if !self.tracer.is_on() {
            return spans;
        }
        let elapsed = arrived.map(|at| at.elapsed()).unwrap_or_default();
        frame.trace(|parent, outcome| {
            let name = outcome.map_or("receive", |_| "outcome");
            let mut span = self.child(parent, SpanKind::Consumer, name, elapsed)?;
            if let Some(outcome) = outcome {
                describe(&mut span, outcome);
            }
            Some(spans.begin(None, span))
        });
        spans
    }

    /// Starts a span for each batch of a frame. The spans began `elapsed` ago, and the operations of a batch become children of its span.
    pub(crate) fn decide(&self, frame: &mut v1::ReconcileResponse, elapsed: Duration) -> Spans {
        let mut spans = Spans::default();
        let Some(reconcile_response::Frame::Batches(batches)) = &mut frame.frame else {
            return spans;
        };
        for batch in &mut batches.batches {
            let parent = TraceContext::parse(&batch.traceparent);
            let span = parent.and_then(|it| self.child(it, SpanKind::Producer, "decide", elapsed));
            let Some(mut span) = span else { continue };
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
            batch.traceparent = spans.begin(Some(batch.id), span).to_string();
        }
        spans
    }

    fn child(
        &self,
        parent: TraceContext,
        kind: SpanKind,
        name: &'static str,
        elapsed: Duration,
    ) -> Option<Span> {
        let mut span = self.tracer.child(parent, kind, name, elapsed)?;
        span.text("decree.session.id", &self.identity.session_id);
        span.text("k8s.cluster.name", self.identity.cluster());
        Some(span)
    }
}

/// Adds the operation and its outcome to the span.
fn describe(span: &mut Span, outcome: &v1::Outcome) {
    use v1::outcome::Outcome;
    span.number("decree.batch.id", outcome.batch_id);
    span.number("decree.operation", outcome.operation.into());
    match &outcome.outcome {
        Some(Outcome::Done(_)) | None => {}
        Some(Outcome::Failed(failed)) => {
            span.fail(&format!(
                "{}: {}",
                failed.class().as_str_name(),
                failed.message
            ));
        }
        Some(Outcome::NotStarted(not_started)) => {
            let cause = not_started.cause().as_str_name();
            span.fail(&format!("{cause}: {}", not_started.message));
        }
    }
}

// === impl Spans ===

impl Spans {
    /// Takes a span, with its batch if the span belongs to a decision. Returns the trace context of the span.
    fn begin(&mut self, batch: Option<u64>, span: Span) -> TraceContext {
        let place = span.context();
        self.0.push((batch, span));
        place
    }

    /// The trace id of the first span.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let (_, span) = self.0.first()?;
        Some(span.context().trace_id_text())
    }

    /// The log fields for the trace of a batch's decision; empty without a trace.
    pub(crate) fn fields_of(&self, batch: u64) -> tracing::Span {
        let mut decisions = self.0.iter();
        let span = decisions.find(|(it, _)| *it == Some(batch));
        span.map_or_else(tracing::Span::none, |(_, span)| {
            let place = span.context();
            let (trace_id, span_id) = (place.trace_id_text(), place.span_id_text());
            tracing::error_span!("trace", trace_id, span_id)
        })
    }
}
