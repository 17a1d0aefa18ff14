//! Traces of server and agent: spans, and their export to an OpenTelemetry collector.
//!
//! # Theory of operation
//!
//! A binary calls [`Tracer::start`], which reads the environment and returns a [`Tracer`] and an [`Exporter`]. Without an endpoint the
//! tracer is off and makes no spans. Otherwise ended spans enter a bounded queue, and a task sends them to the collector in
//! batches. A [`decree::TraceContext`] in the messages of the contract connects the processes: the receiver of a context starts a child
//! span and sends the child's context on.
//!
//! **Invariant:** making a span never blocks. If the queue is full, the span is dropped and counted.
//! **Invariant:** memory is bounded by the queue, one batch in flight, and the maximum length of texts in spans.
//! **Invariant:** nothing is global: a process may hold several tracers.
//!
//! Deliberately outside: the subjects of spans. Sessions define these.

mod exporter;
mod metrics;
mod span;
mod target;
mod tracer;

pub use exporter::Exporter;
pub use opentelemetry::trace::SpanKind;
pub use span::Span;
pub use target::VariableError;
pub use tracer::{StartError, Tracer};

#[cfg(test)]
mod tests;
