//! The metrics of the server. Names are upstream's where upstream has one. Labels are bounded, and none names a ReplicaSet or a pod.

use prometheus_client::{
    metrics::{
        counter::Counter,
        exemplar::HistogramWithExemplars,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use server_core::Kind;

use self::{newest::Newest, queue::UnfinishedWork};
pub(crate) use self::{
    newest::{SessionLabels, UnconvergedLabels},
    queue::QueueMetrics,
};

mod newest;
mod queue;

/// The buckets of grpc-prometheus: the default buckets of the Prometheus library for Go.
const GRPC_BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

type Labels<const N: usize> = [(&'static str, &'static str); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// All metrics of the server. Clones share the values.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) sessions: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) connections_refused: Counter,
    pub(crate) pods: Gauge,
    pub(crate) replica_sets: Gauge,
    pub(crate) batches_in_flight: Gauge,
    pub(crate) quarantined: Gauge,
    pub(crate) view_age: Family<SessionLabels, Gauge<f64, std::sync::atomic::AtomicU64>>,
    pub(crate) session_memory: Family<SessionLabels, Gauge>,
    pub(crate) unconverged: Family<UnconvergedLabels, Gauge>,
    /// The session that shows the three gauges with labels above.
    pub(crate) newest: Newest,
    pub(crate) session_ends: Counters<1>,
    pub(crate) events: Counters<1>,
    pub(crate) rejected_objects: Counters<1>,
    pub(crate) resyncs: Counters<1>,
    pub(crate) denials: Counters<1>,
    pub(crate) access_reload_errors: Counters<1>,
    pub(crate) create_back_offs: Counter,
    pub(crate) decisions: Counters<2>,
    pub(crate) operations: Counters<2>,
    pub(crate) differences: Counters<2>,
    pub(crate) comparisons: Counter,
    pub(crate) decision_latency: HistogramWithExemplars<[(&'static str, String); 1]>,
    pub(crate) panics: Counter,
    pub(crate) recorded_bytes: Counter,
    pub(crate) recording_ends: Counters<1>,
    stale_sync_skips: Counters<2>,
    pub(crate) deletion_age_ratio: Histogram,
    pub(crate) grpc_started: Counters<3>,
    pub(crate) grpc_handled: Counters<4>,
    pub(crate) grpc_handling: Histograms<3>,
    queue_depth: Family<Labels<1>, Gauge>,
    queue_adds: Counters<1>,
    queue_retries: Counters<1>,
    queue_wait: Histograms<1>,
    queue_work: Histograms<1>,
    pub(crate) unfinished: UnfinishedWork,
    /// Registered when the TLS files are loaded.
    pub(crate) tls: transport::Metrics,
}

// === impl Metrics ===

impl Metrics {
    /// Registers all metrics. The help text of each one states its meaning and the action to take.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::new();
        metrics.register_sessions(registry);
        metrics.register_newest(registry);
        metrics.register_decisions(registry);
        metrics.register_queue(registry);
        metrics.register_grpc(registry);
        metrics.register_recordings(registry);
        metrics.register_access(registry);
        metrics.begin_at_zero();
        metrics
    }

    /// Replaces the TLS metrics with those of the loaded files.
    pub(crate) fn with_tls(self, tls: transport::Metrics) -> Self {
        Self { tls, ..self }
    }

    /// The syncs that were put off because the view of a kind was older than a write.
    pub(crate) fn stale_sync_skips(&self, kind: Kind) -> Counter {
        self.stale_sync_skips.get_or_create_owned(&match kind {
            Kind::Pod => [("group", ""), ("resource", "pods")],
            Kind::ReplicaSet => [("group", "apps"), ("resource", "replicasets")],
        })
    }

    pub(crate) fn queue(&self) -> QueueMetrics {
        QueueMetrics {
            depth: self.queue_depth.get_or_create_owned(&queue::NAME),
            adds: self.queue_adds.get_or_create_owned(&queue::NAME),
            retries: self.queue_retries.get_or_create_owned(&queue::NAME),
            wait: self.queue_wait.get_or_create_owned(&queue::NAME),
            work: self.queue_work.get_or_create_owned(&queue::NAME),
        }
    }

    /// Creates the series with upstream's names at 0, as upstream does.
    fn begin_at_zero(&self) {
        drop(self.queue());
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            drop(self.stale_sync_skips(kind));
        }
    }

    fn new() -> Self {
        Self {
            sessions: Gauge::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            pods: Gauge::default(),
            replica_sets: Gauge::default(),
            batches_in_flight: Gauge::default(),
            quarantined: Gauge::default(),
            view_age: Family::default(),
            session_memory: Family::default(),
            unconverged: Family::default(),
            newest: Newest::default(),
            session_ends: Family::default(),
            events: Family::default(),
            rejected_objects: Family::default(),
            resyncs: Family::default(),
            denials: Family::default(),
            access_reload_errors: Family::default(),
            create_back_offs: Counter::default(),
            decisions: Family::default(),
            operations: Family::default(),
            differences: Family::default(),
            comparisons: Counter::default(),
            decision_latency: HistogramWithExemplars::new(exponential_buckets(25e-6, 2.0, 16)),
            panics: Counter::default(),
            recorded_bytes: Counter::default(),
            recording_ends: Family::default(),
            stale_sync_skips: Family::default(),
            deletion_age_ratio: Histogram::new(exponential_buckets(0.25, 2.0, 6)),
            grpc_started: Family::default(),
            grpc_handled: Family::default(),
            grpc_handling: Family::new_with_constructor(|| Histogram::new(GRPC_BUCKETS)),
            queue_depth: Family::default(),
            queue_adds: Family::default(),
            queue_retries: Family::default(),
            queue_wait: Family::new_with_constructor(queue::histogram),
            queue_work: Family::new_with_constructor(queue::histogram),
            unfinished: UnfinishedWork::default(),
            tls: transport::Metrics::default(),
        }
    }

    fn register_sessions(&self, registry: &mut Registry) {
        let mut add =
            |name: &str, help: &str, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add(
            "decree_sessions",
            "Open sessions. Fewer than agents: look at the agents' logs",
            &self.sessions,
        );
        add(
            "decree_connections",
            "Open gRPC connections. At the limit: raise --connections-max or find who connects",
            &self.connections,
        );
        add(
            "decree_pods",
            "Pods that the sessions hold; memory grows with them",
            &self.pods,
        );
        add(
            "decree_replica_sets",
            "ReplicaSets that the sessions hold",
            &self.replica_sets,
        );
        add(
            "decree_batches_in_flight",
            "Batches without all their outcomes. Never falling: an agent or its cluster hangs",
            &self.batches_in_flight,
        );
        add(
            "decree_quarantined_replicasets",
            "ReplicaSets that are invalid and left alone. Above 0: decree get replicasets shows which and why",
            &self.quarantined,
        );
        registry.register(
            "decree_connections_refused",
            "Connections closed at once, as none could give way. Any: raise --connections-max",
            self.connections_refused.clone(),
        );
        registry.register(
            "decree_session_ends",
            "Ended sessions by reason; docs/protocol.md explains each",
            self.session_ends.clone(),
        );
        registry.register(
            "decree_events",
            "Objects and events received by kind",
            self.events.clone(),
        );
        registry.register(
            "decree_rejected_objects",
            "Objects that were not accepted by kind. Above 0: the log names them",
            self.rejected_objects.clone(),
        );
        registry.register(
            "decree_resyncs",
            "Lists asked for again by kind. Frequent: the agent's watches lose events",
            self.resyncs.clone(),
        );
        registry.register("decree_panics", "Panics, each of which ended a session or a call. Above 0: a bug, report it with the log", self.panics.clone());
    }

    fn register_newest(&self, registry: &mut Registry) {
        registry.register(
            "decree_view_age_seconds",
            "How old the agent's view of its cluster is. Growing: its watches hang",
            self.view_age.clone(),
        );
        registry.register(
            "decree_session_memory_bytes",
            "About how many bytes a session holds. Near --session-memory-max or, all together, --memory-max: raise it",
            self.session_memory.clone(),
        );
        registry.register(
            "decree_unconverged_replicasets",
            "ReplicaSets that have lacked pods, or available pods, for 10 minutes. The label because is number or availability. Number above 0: decree top --sort-by unconverged",
            self.unconverged.clone(),
        );
    }

    fn register_decisions(&self, registry: &mut Registry) {
        registry.register(
            "decree_decisions",
            "Batches sent by action and by the rule that decided",
            self.decisions.clone(),
        );
        registry.register(
            "decree_create_back_offs",
            "Times that creates of a ReplicaSet were closed as its pods do not last. Any: decree get replicasets shows which and how they end",
            self.create_back_offs.clone(),
        );
        registry.register("decree_operations", "Outcomes received by action and result. Failures: the agent's log has the cluster's words", self.operations.clone());
        registry.register(
            "decree_differences",
            "What another controller did otherwise, by subject and by what explains it. with departure none above 0: decree diff shows which",
            self.differences.clone(),
        );
        registry.register(
            "decree_comparisons",
            "What another controller did and was compared, alike or not, in mode shadow",
            self.comparisons.clone(),
        );
        registry.register(
            "decree_decision_latency_seconds",
            "From a frame's arrival to its batches' departure",
            self.decision_latency.clone(),
        );
        registry.register(
            "replicaset_controller_sorting_deletion_age_ratio",
            "Ratio of a deleted pod's age to that of the youngest ready pod; below 2 as upstream",
            self.deletion_age_ratio.clone(),
        );
        registry.register("replicaset_controller_stale_sync_skips", "Syncs that waited for a list because an outcome did not carry the object after its write, or a created pod that the stream has passed and not shown. Any: the agent is not ours, or an object cannot be read", self.stale_sync_skips.clone());
    }

    fn register_queue(&self, registry: &mut Registry) {
        registry.register(
            "workqueue_depth",
            "ReplicaSets that wait for a sync. Growing: the server is short of CPU",
            self.queue_depth.clone(),
        );
        registry.register(
            "workqueue_adds",
            "ReplicaSets queued for a sync",
            self.queue_adds.clone(),
        );
        registry.register(
            "workqueue_retries",
            "Syncs that were put off and came back, availability checks included",
            self.queue_retries.clone(),
        );
        registry.register(
            "workqueue_queue_duration_seconds",
            "How long ReplicaSets waited for their sync. Growing: the server is short of CPU",
            self.queue_wait.clone(),
        );
        registry.register_collector(Box::new(self.unfinished.clone()));
        registry.register(
            "workqueue_work_duration_seconds",
            "How long a sync that led to a batch took; the batches of one frame share its time",
            self.queue_work.clone(),
        );
    }

    fn register_recordings(&self, registry: &mut Registry) {
        registry.register(
            "decree_recorded_bytes",
            "Bytes written to recordings of sessions",
            self.recorded_bytes.clone(),
        );
        registry.register(
            "decree_recording_ends",
            "Ended recordings by reason. full: raise --record-bytes-max; behind or failed: the disk is slow or full",
            self.recording_ends.clone(),
        );
    }

    fn register_access(&self, registry: &mut Registry) {
        registry.register(
            "decree_access_denials",
            "Calls and sessions that were denied by reason; the log names the peer once a minute",
            self.denials.clone(),
        );
        registry.register(
            "decree_access_reload_errors",
            "Times that a changed policy or keys of tokens could not be used by file; the last ones stay in force",
            self.access_reload_errors.clone(),
        );
    }

    fn register_grpc(&self, registry: &mut Registry) {
        registry.register(
            "grpc_server_started",
            "Calls begun",
            self.grpc_started.clone(),
        );
        registry.register(
            "grpc_server_handled",
            "Calls ended by code",
            self.grpc_handled.clone(),
        );
        registry.register(
            "grpc_server_handling_seconds",
            "How long calls took. Those of streams are as long as sessions",
            self.grpc_handling.clone(),
        );
    }
}
