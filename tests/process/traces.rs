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
/// The spans from a change to the outcome of its decision, each with its service.
const CHAIN: [(&str, &str); 6] = [
    ("watch", "decree-agent"),
    ("frame", "decree-agent"),
    ("receive", "decree-server"),
    ("decide", "decree-server"),
    ("batch", "decree-agent"),
    ("outcome", "decree-server"),
];

/// Starts server and agent with these flags for traces, and returns them with the address of gRPC.
fn traced(flags: &[&str]) -> (Running, Running, String) {
    let mut server = world::program("decree-server");
    server
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--probe", "off", "--log-level", "info,decree_server=debug"])
        .args(flags)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key")
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
    let server = Running::start(server, Voice::Stderr);
    let address = server.address("grpc");
    let agent = world::flagged_agent_with(&address, Path::new(MANIFEST), flags);
    (server, agent, address)
}

/// The ancestors of a span, the first of the trace first.
fn ancestors<'a>(spans: &'a [Span], span: &'a Span) -> Vec<&'a Span> {
    let mut line = vec![span];
    while let Some(parent) = spans.iter().find(|it| it.id == line[0].parent) {
        line.insert(0, parent);
    }
    line
}

fn names<'a>(line: &[&'a Span]) -> Vec<&'a str> {
    line.iter().map(|span| span.name.as_str()).collect()
}

/// A complete chain of spans whose call is `call`, and that call.
fn chain(spans: &[Span], call: &str) -> Option<(Vec<Span>, Span)> {
    let expected = CHAIN.map(|(name, _)| name);
    let outcomes = spans.iter().filter(|span| span.name == "outcome");
    let lines = outcomes.map(|outcome| ancestors(spans, outcome));
    let mut found = lines
        .filter(|line| names(line) == expected)
        .filter_map(|line| {
            let of_batch = |span: &&Span| span.name == call && span.parent == line[4].id;
            Some((line.clone(), spans.iter().find(of_batch)?))
        });
    let (line, call) = found.next()?;
    Some((line.into_iter().cloned().collect(), call.clone()))
}

/// Checks that a chain is one trace, of both services, in the order of time.
fn check(line: &[Span], call: &Span) {
    for (span, (_, service)) in line.iter().zip(CHAIN) {
        assert_eq!(span.service, service, "{span:?}");
        assert_eq!(span.trace_id, line[0].trace_id, "{span:?}");
        assert!(span.start <= span.end, "{span:?}");
    }
    assert_eq!(line[0].parent, "", "the change begins the trace");
    assert_eq!(call.trace_id, line[0].trace_id);
    let starts = [0, 1, 2, 3, 4].map(|at| line[at].start);
    assert!(starts.is_sorted(), "{line:#?}");
    let (batch, outcome) = (&line[4], &line[5]);
    assert!(
        batch.start <= call.start && call.end <= outcome.end,
        "the call is between {batch:?} and {outcome:?}: {call:?}"
    );
    assert!(!outcome.has_failed && !call.has_failed);
}

#[test]
fn one_trace_leads_from_the_watch_over_the_decision_to_the_outcome() {
    let collector = Collector::start(Manner::Attentive);
    let (server, agent, _) = traced(&["--otlp-endpoint", collector.url()]);
    // The pods become ready, and the agent writes the status.
    let (line, call) =
        collector.wait_for("trace through both", |spans| chain(spans, "write_status"));
    check(&line, &call);
    let of_server = &line[3];
    assert_eq!(of_server.authorization, "Bearer key");
    assert_eq!(of_server.attributes["decree.rule"], "RULE_STATUS_DIFFERS");
    assert_eq!(of_server.attributes["k8s.namespace.name"], "default");
    for process in [&server, &agent] {
        let page = admin::get(&process.address("admin"), "/metrics").expect("it serves it");
        assert!(page.contains("decree_trace_spans_total{result=\"exported\"} "));
        assert!(page.contains("decree_trace_spans_total{result=\"dropped\"} 0"));
    }
}

#[test]
fn lines_of_both_logs_name_the_trace_that_they_belong_to() {
    let collector = Collector::start(Manner::Attentive);
    let flags = ["--otlp-endpoint", collector.url()];
    let (server, agent, address) = traced(&flags);
    let (line, _) = collector.wait_for("trace through both", |spans| chain(spans, "write_status"));
    for (process, message, span) in [
        (&server, "decided", &line[3]),
        (&agent, "batch taken", &line[4]),
        (&agent, "operation finished", &line[4]),
    ] {
        process.wait_for(message, |lines| {
            let mut lines = lines.iter().filter_map(|it| serde_json::from_str(it).ok());
            lines.find(|it: &Value| {
                it["message"] == message
                    && it["trace_id"] == *span.trace_id
                    && it["span_id"] == *span.id
            })
        });
    }
    drop(agent);
    let flags = [&flags[..], &["--log-format", "pretty"]].concat();
    let agent = world::flagged_agent_with(&address, Path::new(MANIFEST), &flags);
    agent.wait_for("line for people", |lines| {
        let mut taken = lines.iter().filter(|it| it.contains("batch taken"));
        taken
            .find(|it| it.contains(" trace_id=") && it.contains(" span_id="))
            .cloned()
    });
}

#[test]
fn scaling_is_one_trace_to_the_new_pods_and_the_status_that_follows() {
    let collector = Collector::start(Manner::Attentive);
    let mut up = world::program("decree");
    up.args(["up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--filename", MANIFEST, "--log-level", "info"])
        .args(["--otlp-endpoint", collector.url()]);
    let up = Running::start(up, Voice::Stderr);
    world::wait_until_converged(&up.address("grpc"), 2);
    let scale = |replicas: usize| {
        let scaled = world::program("decree")
            .args(["demo", "scale", "web-7d4b9c", &replicas.to_string()])
            .args(["--admin", &up.address("admin")])
            .output()
            .expect("it was built");
        assert!(scaled.status.success(), "{scaled:?}");
    };
    scale(29);
    let (line, call) =
        collector.wait_for("trace of the scaling", |spans| chain(spans, "create_pod"));
    check(&line, &call);
    assert_eq!(line[0].attributes["decree.kind"], "replicasets");
    assert_eq!(line[0].attributes["k8s.replicaset.name"], "web-7d4b9c");
    // The effects of the outcomes belong to the same trace, unless a watch has shown the new pod before. Then the test tries
    // again.
    let mut replicas = 30..60;
    collector.wait_for("decision on an outcome", |spans| {
        let mut decisions = spans.iter().filter(|span| span.name == "decide");
        let found = decisions.find(|span| {
            let line = ancestors(spans, span);
            names(&line) == [&CHAIN.map(|(name, _)| name)[..], &["decide"]].concat()
                && line[6].trace_id == line[0].trace_id
        });
        if found.is_none() {
            replicas.next().map(scale);
        }
        found.map(|_| ())
    });
    // The process exports the remaining spans at its end.
    let seen = collector.spans().len();
    up.terminate();
    assert!(up.wait().success());
    assert!(collector.spans().len() >= seen);
}

#[test]
fn collector_that_never_answers_costs_spans_and_nothing_else() {
    let collector = Collector::start(Manner::Silent);
    let (server, agent, address) = traced(&["--otlp-endpoint", collector.url()]);
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
fn latency_leads_prometheus_to_a_trace_of_the_collector() {
    let programs = tests::or_skip!(tools::prometheus());
    let collector = Collector::start(Manner::Attentive);
    let (server, _agent, _) = traced(&["--otlp-endpoint", collector.url()]);
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
