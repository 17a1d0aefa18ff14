//! The server's spans of what a session carries: of an event or outcome as it is taken, and of a decision.

use std::time::Duration;

use decree::{
    TraceContext,
    v1::{self, reconcile_request, reconcile_response},
};
use otlp::{Role, Span, Tracer};
use server_session::{Identity, Part};
use tokio::time::Instant;

/// The spans of one session.
#[derive(Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    session_id: String,
    cluster: String,
}

/// Spans under way. They end when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<Span>);

// === impl Traces ===

impl Traces {
    pub(crate) fn new(tracer: Tracer, identity: &Identity) -> Self {
        Self {
            tracer,
            session_id: identity.session_id.clone(),
            cluster: identity.cluster().to_owned(),
        }
    }

    /// Begins to take a part of a frame that arrived at a time: what is decided on its events and outcomes will be children of this.
    pub(crate) fn receive(&self, part: &mut Part, arrived: Option<Instant>) -> Spans {
        use reconcile_request::Frame;
        let mut spans = Spans::default();
        if !self.tracer.is_on() {
            return spans;
        }
        let Some(request) = part.news_mut() else {
            return spans;
        };
        let elapsed = arrived.map(|at| at.elapsed()).unwrap_or_default();
        if let Some(Frame::Events(events)) = &mut request.frame {
            for event in &mut events.events {
                let span = self.child(&event.traceparent, Role::Consumer, "receive", elapsed);
                spans.begin(span, &mut event.traceparent);
            }
        } else if let Some(Frame::Outcomes(outcomes)) = &mut request.frame {
            for outcome in &mut outcomes.outcomes {
                let parent = &outcome.traceparent;
                let mut span = self.child(parent, Role::Consumer, "outcome", elapsed);
                if let Some(span) = &mut span {
                    describe(span, outcome);
                }
                spans.begin(span, &mut outcome.traceparent);
            }
        }
        spans
    }

    /// Begins to send what was decided within a time: what becomes of it will be children of this.
    pub(crate) fn decide(&self, frame: &mut v1::ReconcileResponse, elapsed: Duration) -> Spans {
        let mut spans = Spans::default();
        let Some(reconcile_response::Frame::Batches(batches)) = &mut frame.frame else {
            return spans;
        };
        if !self.tracer.is_on() {
            return spans;
        }
        for batch in &mut batches.batches {
            let mut span = self.child(&batch.traceparent, Role::Producer, "decide", elapsed);
            if let Some(span) = &mut span {
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
            }
            spans.begin(span, &mut batch.traceparent);
        }
        spans
    }

    fn child(
        &self,
        traceparent: &str,
        role: Role,
        name: &'static str,
        elapsed: Duration,
    ) -> Option<Span> {
        let parent = TraceContext::parse(traceparent)?;
        let mut span = self.tracer.child(parent, role, name, elapsed)?;
        span.text("decree.session.id", &self.session_id);
        span.text("k8s.cluster.name", &self.cluster);
        Some(span)
    }
}

/// Says which operation has an outcome, and which.
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
    /// Takes a span, and writes its place in the trace over that of its parent.
    fn begin(&mut self, span: Option<Span>, traceparent: &mut String) {
        if let Some(span) = span {
            *traceparent = span.context().to_string();
            self.0.push(span);
        }
    }

    /// Returns the id of the trace of the first, in lower-case hexadecimal digits.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let context = self.0.first()?.context();
        Some(format!("{:032x}", u128::from_be_bytes(context.trace_id)))
    }
}
