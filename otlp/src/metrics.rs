//! What became of spans.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// The counters of one tracer. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// The collector took them.
    pub(crate) exported: Counter,
    /// The queue was full, as the collector is slow or away.
    pub(crate) dropped: Counter,
    /// The collector did not take them.
    pub(crate) failed: Counter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers the counters.
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
            "Spans of traces by result. dropped or failed: the collector is slow or away, or lower --otlp-sample-ratio",
            spans,
        );
        metrics
    }
}
