//! The agent's spans of a session. One is for a change, from the watch to its frame. Another is for a batch, from its frame over its calls
//! to its outcomes.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use agent_core::{
    api::{ApiError, Call, Kind, Object},
    report::Report,
    watch::WatchEvent,
};
use decree::{
    TraceContext,
    v1::{self, reconcile_request, reconcile_response},
};
use otlp::{Span, SpanKind, Tracer};

/// The spans of one agent.
#[derive(Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    /// The traced batches under way, by their numbers in the session.
    batches: HashMap<u64, BatchSpan>,
}

#[derive(Debug)]
struct BatchSpan {
    span: Span,
    /// How many operations have no outcome yet.
    open: usize,
}

/// A call to the cluster, from its start to its answer.
#[derive(Debug)]
pub(crate) struct CallSpan(Option<Span>);

// === impl Traces ===

impl Traces {
    pub(crate) fn new(tracer: Tracer) -> Self {
        Self {
            tracer,
            batches: HashMap::new(),
        }
    }

    /// Begins a trace with a change from a watch, if the trace is sampled.
    pub(crate) fn watch(&self, kind: Kind, event: &WatchEvent) -> Option<Span> {
        let (object, change) = match event {
            WatchEvent::Applied(object) | WatchEvent::MadeByOther { object, .. } => {
                (object, "applied")
            }
            WatchEvent::Deleted(object) => (object, "deleted"),
            WatchEvent::Invalid { .. } | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {
                return None;
            }
        };
        let mut span = self.tracer.root(SpanKind::Internal, "watch")?;
        span.text("decree.kind", kind.plural());
        span.text("decree.change", change);
        match object {
            Object::Pod(pod) => {
                span.text("k8s.namespace.name", &pod.namespace);
                span.text("k8s.pod.name", &pod.name);
                span.text("k8s.pod.uid", &pod.uid);
            }
            Object::ReplicaSet(set) => {
                let set = &set.projected;
                span.text("k8s.namespace.name", &set.namespace);
                span.text("k8s.replicaset.name", &set.name);
                span.text("k8s.replicaset.uid", &set.uid);
            }
        }
        Some(span)
    }

    /// Notes that a frame is sent: the traces in the frame continue as children of this span.
    pub(crate) fn send(&self, frame: &mut v1::ReconcileRequest) {
        let Some(reconcile_request::Frame::Events(events)) = &mut frame.frame else {
            return;
        };
        for event in &mut events.events {
            if let Some(mut span) = self.child(&event.traceparent, SpanKind::Producer, "frame") {
                span.number("decree.frame.sequence", frame.sequence);
                event.traceparent = span.context().to_string();
            }
        }
    }

    /// Takes a frame. A traced batch has a span until all its outcomes have come, and all that follows from the batch is a child of that
    /// span.
    pub(crate) fn receive(&mut self, frame: &mut v1::ReconcileResponse) {
        let Some(reconcile_response::Frame::Batches(batches)) = &mut frame.frame else {
            return;
        };
        for batch in &mut batches.batches {
            let Some(mut span) = self.child(&batch.traceparent, SpanKind::Consumer, "batch") else {
                continue;
            };
            span.number("decree.batch.id", batch.id);
            if let Some(set) = &batch.replica_set {
                span.text("k8s.namespace.name", &set.namespace);
                span.text("k8s.replicaset.name", &set.name);
                span.text("k8s.replicaset.uid", &set.uid);
            }
            batch.traceparent = span.context().to_string();
            self.batches.insert(batch.id, BatchSpan { span, open: 0 });
        }
    }

    pub(crate) fn note(&mut self, report: &Report) {
        if self.batches.is_empty() {
            return;
        }
        if let Report::BatchTaken { id, operations } = report {
            self.count_open(*id, |_| *operations);
        } else if let Report::BatchRefused { id, refusal } = report {
            if let Some(mut batch) = self.batches.remove(id) {
                batch.span.fail(&refusal.message);
            }
        } else if let Report::Finished { batch_id, .. } = report {
            self.count_open(*batch_id, |open| open.saturating_sub(1));
        } else if let Report::Disconnected(_) = report {
            for (_, mut batch) in self.batches.drain() {
                batch.span.fail("the session ended");
            }
        }
    }

    /// The trace fields for a log line about a report; disabled without a trace.
    pub(crate) fn fields_of(&self, report: &Report) -> tracing::Span {
        let batch = report.batch().and_then(|id| self.batches.get(&id));
        batch.map_or_else(tracing::Span::none, |batch| {
            let context = batch.span.context();
            let (trace_id, span_id) = (context.trace_id_text(), context.span_id_text());
            tracing::error_span!("trace", trace_id, span_id)
        })
    }

    /// Begins a call, as a child of its trace context.
    pub(crate) fn call(&self, call: &Call, trace: Option<TraceContext>) -> CallSpan {
        let name = call.request.verb();
        CallSpan(trace.and_then(|it| {
            self.tracer
                .child(it, SpanKind::Client, name, Duration::ZERO)
        }))
    }

    /// Counts the operations without an outcome. The span of a batch ends with the last of them.
    fn count_open(&mut self, batch: u64, count: impl FnOnce(usize) -> usize) {
        if let Entry::Occupied(mut entry) = self.batches.entry(batch) {
            let open = count(entry.get().open);
            entry.get_mut().open = open;
            if open == 0 {
                entry.remove();
            }
        }
    }

    fn child(&self, traceparent: &str, kind: SpanKind, name: &'static str) -> Option<Span> {
        let parent = TraceContext::parse(traceparent)?;
        self.tracer.child(parent, kind, name, Duration::ZERO)
    }
}

// === impl CallSpan ===

impl CallSpan {
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
