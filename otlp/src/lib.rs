//! Traces of server and agent: spans, and their way to a collector of OpenTelemetry.
//!
//! # Theory of operation
//!
//! A binary flattens [`OtlpArgs`] into its flags and calls [`Tracer::start`], which returns a [`Tracer`] and an [`Exporter`]. Without an endpoint
//! the tracer is off and makes no spans. Otherwise its spans go, as they end, into a bounded queue, from which a task sends them to the collector
//! in batches. What leads from one process to the other is a [`decree::TraceContext`] in the messages of the contract: whoever receives one makes
//! a child of it and passes on its own.
//!
//! **Invariant:** whoever makes a span never waits. A span that finds the queue full is dropped and counted.
//! **Invariant:** memory is bounded: by the queue, one batch on its way, and the texts of spans, which are cut.
//! **Invariant:** nothing is global: a process may hold several tracers.
//!
//! Deliberately outside: what the spans are of, and how a context gets from an event to a decision; that is for the sessions to say.

mod args;
mod exporter;
mod metrics;
mod span;
mod tracer;

pub use args::{OtlpArgs, SampleRatio, SampleRatioError, VariableError};
pub use exporter::Exporter;
pub use span::Span;
pub use tracer::{Role, StartError, Tracer};

#[cfg(test)]
mod tests;
