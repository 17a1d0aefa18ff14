//! One span, from its start until its drop.

use std::time::{Duration, SystemTime};

use crate::excerpt;
use decree::TraceContext;
use opentelemetry::{
    KeyValue, StringValue,
    trace::{Span as _, SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace;

/// A recorded span. It ends on drop.
#[derive(Debug)]
pub struct Span(pub(crate) trace::Span);

impl Span {
    /// The context that makes another span a child of this span.
    #[must_use]
    pub fn context(&self) -> TraceContext {
        let context = self.0.span_context();
        TraceContext {
            trace_id: context.trace_id().to_bytes(),
            span_id: context.span_id().to_bytes(),
            flags: context.trace_flags().to_u8(),
        }
    }

    /// Adds a text attribute, cut to a kilobyte.
    pub fn text(&mut self, key: &'static str, text: &str) {
        let text = StringValue::from(excerpt(text));
        self.0.set_attribute(KeyValue::new(key, text));
    }

    /// Adds a number attribute.
    pub fn number(&mut self, key: &'static str, number: u64) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.0.set_attribute(KeyValue::new(key, number));
    }

    /// Marks the span as failed, with the reason.
    pub fn fail(&mut self, why: &str) {
        self.0.set_status(Status::error(excerpt(why)));
    }
}

pub(crate) fn ago(elapsed: Duration) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(elapsed).unwrap_or(now)
}

pub(crate) fn remote(context: TraceContext) -> SpanContext {
    let TraceContext {
        trace_id,
        span_id,
        flags,
    } = context;
    SpanContext::new(
        TraceId::from_bytes(trace_id),
        SpanId::from_bytes(span_id),
        TraceFlags::new(flags),
        true,
        TraceState::default(),
    )
}
