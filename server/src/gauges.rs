//! The gauges of live sessions, read from what each session shows when the page is read. The queue has upstream's names.

use std::{fmt, sync::Arc};

use decree_core::Sizes;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::{
    metrics::seconds,
    registry::{LiveSession, LiveSessions},
};

#[derive(Debug)]
pub(crate) struct SessionGauges(pub(crate) Arc<LiveSessions>);

/// A gauge that is summed over sessions: its name, its help text, and the part of a session.
type Sum = (&'static str, &'static str, fn(&Sizes) -> usize);

const SUMS: [Sum; 6] = [
    (
        "decree_pods",
        "Pods that the sessions hold; memory grows with them.",
        |it| it.pods,
    ),
    (
        "decree_replica_sets",
        "ReplicaSets that the sessions hold.",
        |it| it.replica_sets,
    ),
    (
        "decree_batches_in_flight",
        "Batches without all their outcomes. Never falling: an agent or its cluster hangs.",
        |it| it.batches_in_flight,
    ),
    (
        "decree_quarantined_replicasets",
        "ReplicaSets that are left alone: invalid, or too large for the memory of their session. Above 0: decree get replicasets shows which and why.",
        |it| it.quarantined,
    ),
    (
        "decree_objects_beyond_memory",
        "Large objects whose selector, labels and conditions a session has no memory for. Above 0: shrink them or raise --session-memory-max.",
        |it| it.beyond_memory,
    ),
    (
        "workqueue_depth",
        "ReplicaSets that wait for a sync. Growing: the server is short of CPU.",
        |it| it.queued,
    ),
];

impl Collector for SessionGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (sessions, encoder) = (self.0.of(""), &mut encoder);
        let help = "Open sessions. Fewer than agents that lead: look at the agents' logs.";
        add(encoder, "decree_sessions", help, int(sessions.len()))?;
        for (name, help, of) in SUMS {
            let sum = sessions.iter().map(|it| of(&sizes(it))).sum();
            add(encoder, name, help, int(sum))?;
        }
        let ages = sessions.iter().map(|it| it.handle.shown.longest_sync());
        let name = "workqueue_longest_running_processor_seconds";
        let help = "Age of the oldest sync in progress. Growing: an agent or its cluster hangs.";
        add(encoder, name, help, ages.fold(0.0, f64::max))?;
        by_session(encoder, &sessions)
    }
}

/// Writes a gauge. Those of the work queue have upstream's label.
fn add<V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: V,
) -> Result<(), fmt::Error> {
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    let value = ConstGauge::new(value);
    if name.starts_with("workqueue_") {
        let labels = [("name", "replicaset")];
        return value.encode(gauge.encode_family(&labels)?);
    }
    value.encode(gauge)
}

/// The gauges with the labels of a session: the display name of its cluster, the cluster's uid and the shard. Only one session at a time has a
/// uid and a shard.
fn by_session(
    encoder: &mut DescriptorEncoder<'_>,
    sessions: &[LiveSession],
) -> Result<(), fmt::Error> {
    let (name, help) = (
        "decree_view_age_seconds",
        "How old the agent's view of its cluster is. Growing: its watches hang.",
    );
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for session in sessions {
        if let Some(age) = session.handle.shown.stats().view_age {
            let labels = labels(session);
            ConstGauge::new(seconds(age)).encode(gauge.encode_family(&labels)?)?;
        }
    }
    let (name, help) = (
        "decree_session_memory_bytes",
        "About how many bytes a session holds. Near --session-memory-max or, all together, --memory-max: raise it.",
    );
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for session in sessions {
        let (labels, held) = (labels(session), int(sizes(session).bytes));
        ConstGauge::new(held).encode(gauge.encode_family(&labels)?)?;
    }
    let (name, help) = (
        "decree_unconverged_replicasets",
        "ReplicaSets that have lacked pods, or available pods, for 10 minutes. The label because is number or availability. Number above 0: decree get rs.",
    );
    let mut gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for session in sessions {
        let sizes = sizes(session);
        for (because, count) in [
            ("number", sizes.miscounted_for_long),
            ("availability", sizes.unavailable_for_long),
        ] {
            let [cluster, uid, shard] = labels(session);
            let labels = [cluster, uid, shard, ("because", because)];
            ConstGauge::new(int(count)).encode(gauge.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn labels(session: &LiveSession) -> [(&'static str, &str); 3] {
    let identity = &session.identity;
    [
        ("cluster", identity.cluster()),
        ("cluster_uid", &identity.cluster_uid),
        ("shard", &identity.shard),
    ]
}

fn sizes(session: &LiveSession) -> Sizes {
    session.handle.shown.stats().sizes
}

fn int(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
