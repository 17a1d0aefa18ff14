//! The spans of a tracer, and their loss without a collector.

use std::{net::TcpListener, time::Duration};

use crate::transport::Endpoint;
use decree::TraceContext;
use prometheus_client::{encoding::text, registry::Registry};

use super::*;

/// Starts a tracer whose collector accepts connections and never responds.
fn tracer(ratio: f64, registry: &mut Registry) -> (Tracer, Exporter, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = silent.local_addr().expect("it is bound");
    let args = OtlpArgs {
        otlp_endpoint: format!("http://{address}").parse::<Endpoint>().ok(),
        otlp_sample_ratio: ratio,
        ..OtlpArgs::default()
    };
    let started = Tracer::start(&args, "test", "0", registry);
    let (tracer, exporter) = started.expect("the flags are valid");
    (tracer, exporter, silent)
}

fn parent(byte: u8, flags: u8) -> TraceContext {
    TraceContext {
        trace_id: [byte; 16],
        span_id: [1; 8],
        flags,
    }
}

#[tokio::test]
async fn full_queue_drops_spans_counts_them_and_makes_nobody_wait() {
    let mut registry = Registry::default();
    let (tracer, exporter, _silent) = tracer(1.0, &mut registry);
    // The test does not await anything, so the task does not run.
    for _ in 0..3_000 {
        drop(tracer.root(SpanKind::Internal, "span", Duration::ZERO));
    }
    let mut page = String::new();
    text::encode(&mut page, &registry).expect("it can be written");
    let dropped = "decree_trace_spans_total{result=\"dropped\"} 952";
    assert!(page.contains(dropped), "{page}");
    tokio::time::pause();
    exporter.finish().await;
}

#[tokio::test]
async fn child_is_sampled_if_its_parent_is_and_the_ratio_has_it() {
    let (half, _exporter, _silent) = tracer(0.5, &mut Registry::default());
    let child = |parent| half.child(parent, SpanKind::Consumer, "span");
    let low = child(parent(1, 1)).expect("it is sampled");
    assert_eq!(low.context().trace_id, [1; 16]);
    assert_ne!(low.context().span_id, [1; 8]);
    assert!(low.context().is_sampled());
    assert!(child(parent(1, 0)).is_none(), "its parent is not");
    assert!(child(parent(0xff, 1)).is_none(), "the ratio has it not");
    let (none, _exporter, _silent) = tracer(0.0, &mut Registry::default());
    assert!(
        none.root(SpanKind::Internal, "span", Duration::ZERO)
            .is_none()
    );
}

#[tokio::test]
async fn tracer_that_is_off_makes_no_spans() {
    let off = Tracer::default();
    assert!(
        off.root(SpanKind::Internal, "span", Duration::ZERO)
            .is_none()
    );
    let child = off.child(parent(1, 1), SpanKind::Internal, "span");
    assert!(child.is_none());
}

#[tokio::test]
async fn collector_behind_tls_needs_a_ca() {
    let args = OtlpArgs {
        otlp_endpoint: "https://collector:4317".parse().ok(),
        ..OtlpArgs::default()
    };
    let started = Tracer::start(&args, "test", "0", &mut Registry::default());
    assert!(matches!(started, Err(StartError::NoCa)));
}
