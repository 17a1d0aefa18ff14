//! The spans of a tracer, and their loss without a collector.

use std::{net::TcpListener, time::Duration};

use decree::TraceContext;
use prometheus_client::{encoding::text, registry::Registry};

use super::{target::Target, *};

/// Starts a tracer whose collector accepts connections and never responds.
fn tracer(registry: &mut Registry) -> (Tracer, Exporter, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = silent.local_addr().expect("it is bound");
    let started = Tracer::to(
        &target(&format!("http://{address}")),
        ("test", "0"),
        registry,
    );
    let (tracer, exporter) = started.expect("it is a collector");
    (tracer, exporter, silent)
}

fn target(endpoint: &str) -> Target {
    Target {
        endpoint: endpoint.parse().expect("it is an endpoint"),
        ca: None,
        timeout: Duration::from_secs(10),
    }
}

fn parent(flags: u8) -> TraceContext {
    TraceContext {
        trace_id: [1; 16],
        span_id: [1; 8],
        flags,
    }
}

#[tokio::test]
async fn full_queue_drops_spans_counts_them_and_makes_nobody_wait() {
    let mut registry = Registry::default();
    let (tracer, exporter, _silent) = tracer(&mut registry);
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
async fn child_is_sampled_if_its_parent_is() {
    let (tracer, _exporter, _silent) = tracer(&mut Registry::default());
    let child = |parent| tracer.child(parent, SpanKind::Consumer, "span");
    let sampled = child(parent(1)).expect("its parent is");
    assert_eq!(sampled.context().trace_id, [1; 16]);
    assert_ne!(sampled.context().span_id, [1; 8]);
    assert!(sampled.context().is_sampled());
    assert!(child(parent(0)).is_none(), "its parent is not");
}

#[tokio::test]
async fn tracer_that_is_off_makes_no_spans() {
    let off = Tracer::default();
    assert!(
        off.root(SpanKind::Internal, "span", Duration::ZERO)
            .is_none()
    );
    let child = off.child(parent(1), SpanKind::Internal, "span");
    assert!(child.is_none());
}

#[tokio::test]
async fn collector_behind_tls_needs_a_ca() {
    let encrypted = target("https://collector:4317");
    let started = Tracer::to(&encrypted, ("test", "0"), &mut Registry::default());
    assert!(matches!(started, Err(StartError::NoCa)));
}
