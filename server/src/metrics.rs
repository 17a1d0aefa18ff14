//! The metrics of the server. Names are upstream's where upstream has one. Labels are bounded, and none names a ReplicaSet or a pod.

use decree_api::v1::Rule;
use decree_core::{Kind, Span};
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use service::metrics;

/// The buckets of grpc-prometheus: the default buckets of the Prometheus library for Go.
const GRPC_BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;

metrics! {
    /// All metrics of the server. Clones share the values.
    pub(crate) struct Metrics { tls: service::transport::Metrics }
    connections: Gauge = "decree_connections",
        "Open gRPC connections. At twice --sessions-max: raise that or find the clients";
    connections_refused: Counter = "decree_connections_refused",
        "Connections closed at once, as all others have sessions. Any: raise --sessions-max";
    session_ends: Counters<1> = "decree_session_ends",
        "Ended sessions by reason; docs/protocol.md explains each";
    rejected_objects: Counters<1> = "decree_rejected_objects",
        "Objects that were not accepted by kind. Above 0: the log names them";
    resyncs: Counters<1> = "decree_resyncs",
        "Requested lists by kind. Frequent: the agent's watches lose events";
    denials: Counters<1> = "decree_access_denials",
        "Calls and sessions that were denied by reason; the log names the peer once a minute";
    access_reload_errors: Counters<1> = "decree_access_reload_errors",
        "Times that a changed policy or keys of tokens could not be used by file; the last ones stay in force";
    create_back_offs: Counters<1> = "decree_create_back_offs",
        "Minutes in which missing pods of a ReplicaSet were not created, by the rule of the reason. Any: decree get replicasets shows which and why";
    decisions: Counters<2> = "decree_decisions",
        "Batches sent by action and by the rule that decided";
    operations: Counters<2> = "decree_operations",
        "Outcomes received by action and result. Failures: the agent's log has the cluster's messages";
    differences: Counters<2> = "decree_differences",
        "Acts of another controller that differ from the decisions by subject and explanation. With departure none above 0: decree diff shows which";
    comparisons: Counter = "decree_comparisons",
        "Decisions that were compared with the acts of another controller, equal or not";
    not_compared: Counter = "decree_comparisons_skipped",
        "Decisions that were not comparable with the acts of another controller, because the ReplicaSet or its pods had just changed";
    decision_latency: Histogram = "decree_decision_latency_seconds",
        "From a frame's arrival to its batches' departure",
        Histogram::new(exponential_buckets(25e-6, 2.0, 16));
    panics: Counter = "decree_panics",
        "Panics, each of which ended a session or a call. Above 0: a bug, report it with the log";
    recording_ends: Counters<1> = "decree_recording_ends",
        "Ended recordings by reason. full: raise --record-bytes-max; behind or failed: the disk is slow or full";
    stale_sync_skips: Counters<2> = "replicaset_controller_stale_sync_skips",
        "Syncs that waited for a list, because an outcome or the stream lacked an object. Any: a third-party agent, or an object that cannot be read";
    grpc_started: Counters<3> = "grpc_server_started",
        "Calls begun";
    grpc_handled: Counters<4> = "grpc_server_handled",
        "Calls ended by code";
    grpc_handling: Family<Labels<3>, Histogram, fn() -> Histogram> = "grpc_server_handling_seconds",
        "How long calls took. Those of streams are as long as sessions",
        Family::new_with_constructor(|| Histogram::new(GRPC_BUCKETS));
}

/// A span in seconds, which need no nanosecond.
#[expect(
    clippy::cast_precision_loss,
    reason = "a wait or an age needs no nanosecond"
)]
pub(crate) const fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        metrics.register_table(registry);
        metrics.tls.register_tls(registry);
        // The series of alerts and those with upstream's name exist from the start, so that a first count shows as an increase.
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            drop(metrics.stale_sync_skips(kind));
        }
        let (errors, waits) = (&metrics.access_reload_errors, &metrics.create_back_offs);
        for file in ["policy", "token_keys"] {
            drop(errors.get_or_create_owned(&[("file", file)]));
        }
        for rule in [Rule::PodsDoNotLast, Rule::ManyUnassigned] {
            drop(waits.get_or_create_owned(&[("reason", rule.as_str_name())]));
        }
        metrics
    }

    /// The syncs that were put off because the view of a kind was older than a write.
    pub(crate) fn stale_sync_skips(&self, kind: Kind) -> Counter {
        self.stale_sync_skips.get_or_create_owned(&match kind {
            Kind::Pod => [("group", ""), ("resource", "pods")],
            Kind::ReplicaSet => [("group", "apps"), ("resource", "replicasets")],
        })
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn counters_of_alerts_begin_at_0() {
        let mut registry = Registry::default();
        drop(Metrics::register(&mut registry));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a text takes it");
        for series in [
            r#"decree_access_reload_errors_total{file="policy"}"#,
            r#"decree_access_reload_errors_total{file="token_keys"}"#,
            r#"decree_create_back_offs_total{reason="RULE_PODS_DO_NOT_LAST"}"#,
        ] {
            assert!(page.contains(&format!("\n{series} 0\n")), "{page}");
        }
    }
}
