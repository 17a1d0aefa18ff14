//! The metrics of exported and lost spans.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// The counters of one tracer. Clones share the values.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// The collector accepted the spans.
    pub(crate) exported: Counter,
    /// The queue was full, because the collector is slow or unreachable.
    pub(crate) dropped: Counter,
    /// The collector did not accept the spans.
    pub(crate) failed: Counter,
}

impl Metrics {
    pub(crate) fn register_spans(registry: &mut Registry) -> Self {
        let spans = Family::<[(&str, &str); 1], Counter>::default();
        let result = |result| spans.get_or_create_owned(&[("result", result)]);
        let metrics = Self {
            exported: result("exported"),
            dropped: result("dropped"),
            failed: result("failed"),
        };
        registry.register(
            "decree_trace_spans",
            "Spans of traces by result. dropped or failed: the collector is slow or away, or OTEL_TRACES_SAMPLER samples too much",
            spans,
        );
        metrics
    }
}
