//! Traces: server and agent send their spans to a collector, and one trace spans both.

use std::path::Path;

use serde_json::Value;
use tests::{
    admin,
    collector::{Collector, Manner, Span},
    running::{Running, Voice},
    tools,
};

use crate::{
    monitoring::{Prometheus, answer, eventually},
    world,
};

const MANIFEST: &str = "docs/examples/web.yaml";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Starts server and agent with these variables for traces, and returns them with the address of gRPC.
fn traced(variables: &[(&str, &str)]) -> (Running, Running, String) {
    let mut server = world::program("decree-server");
    server
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--probe", "off", "--log-level", "info,decree_server=debug"])
        .envs(variables.iter().copied())
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key")
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
    let server = Running::start(server, Voice::Stderr);
    let address = server.address("grpc");
    let agent = world::agent_set_up_with(&address, Path::new(MANIFEST), &[], variables);
    (server, agent, address)
}

/// A decision, and a call of this name that it led to.
fn decided_call(spans: &[Span], name: &str) -> Option<[Span; 2]> {
    let mut calls = spans.iter().filter(|span| span.name == name);
    calls.find_map(|call| {
        let decision = spans.iter().find(|span| span.id == call.parent)?;
        Some([decision.clone(), call.clone()])
    })
}

#[test]
fn one_trace_leads_from_the_decision_to_its_calls() {
    let collector = Collector::start(Manner::Attentive);
    let (server, agent, _) = traced(&[(ENDPOINT, collector.url())]);
    for (name, rule) in [
        ("create_pod", "RULE_TOO_FEW_REPLICAS"),
        ("write_status", "RULE_STATUS_DIFFERS"),
    ] {
        let found = collector.wait_for(name, |spans| decided_call(spans, name));
        let [decision, call] = found;
        assert_eq!(decision.name, "decide");
        assert_eq!(decision.service, "decree-server");
        assert_eq!(decision.parent, "", "the decision begins the trace");
        assert_eq!(decision.authorization, "Bearer key");
        assert_eq!(decision.attributes["decree.rule"], rule);
        assert_eq!(decision.attributes["k8s.namespace.name"], "default");
        assert_eq!(call.service, "decree-agent");
        assert_eq!(call.trace_id, decision.trace_id);
        assert!(decision.start <= call.start && call.start <= call.end);
        assert!(!call.has_failed);
        server.wait_for("decided", |lines| {
            let mut lines = lines.iter().filter_map(|it| serde_json::from_str(it).ok());
            lines.find(|it: &Value| {
                it["message"] == "decided"
                    && it["trace_id"] == *decision.trace_id
                    && it["span_id"] == *decision.id
            })
        });
    }
    for process in [&server, &agent] {
        let page = admin::get(&process.address("admin"), "/metrics").expect("it serves it");
        assert!(page.contains("decree_trace_spans_total{result=\"exported\"} "));
        assert!(page.contains("decree_trace_spans_total{result=\"dropped\"} 0"));
    }
    // A process exports the remaining spans at its end.
    let seen = collector.spans().len();
    server.terminate();
    assert!(server.wait().success());
    assert!(collector.spans().len() >= seen);
}

#[test]
fn collector_that_never_answers_costs_spans_and_nothing_else() {
    let collector = Collector::start(Manner::Silent);
    let (server, agent, address) = traced(&[(ENDPOINT, collector.url())]);
    world::wait_until_converged(&address, 2);
    server.wait_for_message("the collector does not take traces", 1);
    let page = admin::get(&server.address("admin"), "/metrics").expect("it serves it");
    assert!(page.contains("decree_trace_spans_total{result=\"exported\"} 0"));
    let failed = page.lines().find_map(|line| {
        line.strip_prefix("decree_trace_spans_total{result=\"failed\"} ")?
            .parse::<u64>()
            .ok()
    });
    assert!(failed > Some(0), "{page}");
    agent.terminate();
    assert!(agent.wait().success());
    server.terminate();
    assert!(server.wait().success());
}

#[test]
fn without_an_endpoint_there_are_no_traces() {
    let (server, agent, address) = traced(&[]);
    world::wait_until_converged(&address, 2);
    for process in [&server, &agent] {
        let page = admin::get(&process.address("admin"), "/metrics").expect("it serves it");
        assert!(!page.contains("decree_trace_spans"), "{page}");
        assert_eq!(process.messages("traces are exported"), 0);
        assert!(!process.tail().iter().any(|line| line.contains("trace_id")));
    }
}

#[test]
fn sampler_of_the_environment_applies() {
    let collector = Collector::start(Manner::Attentive);
    let variables = [
        (ENDPOINT, collector.url()),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ];
    let (server, agent, address) = traced(&variables);
    world::wait_until_converged(&address, 2);
    for process in [agent, server] {
        assert_eq!(process.messages("traces are exported"), 1);
        process.terminate();
        assert!(process.wait().success());
    }
    assert!(collector.spans().is_empty());
}

#[test]
fn latency_leads_prometheus_to_a_trace_of_the_collector() {
    let programs = tests::or_skip!(tools::prometheus());
    let collector = Collector::start(Manner::Attentive);
    let (server, _agent, _) = traced(&[(ENDPOINT, collector.url())]);
    let prometheus = Prometheus::start(programs, &[&server.address("admin")]);
    let address = prometheus.address();
    eventually("readiness", || admin::get(&address, "/-/ready").ok());
    let trace = eventually("exemplar", || {
        let query = "query=decree_decision_latency_seconds_bucket&start=0&end=4000000000";
        let found = answer(&address, &format!("/api/v1/query_exemplars?{query}"));
        let labels = &found["data"][0]["exemplars"][0]["labels"];
        labels["trace_id"].as_str().map(str::to_owned)
    });
    collector.wait_for("decision of the exemplar", |spans| {
        let mut decisions = spans.iter().filter(|span| span.name == "decide");
        decisions.find(|span| span.trace_id == trace).map(drop)
    });
}
