//! Turns the reports of a session into logs, metrics and watched decisions.

use std::{mem, sync::Arc, time::Duration};

use decree_api::v1;
use decree_core::{ControllerReport, Kind};
use prometheus_client::metrics::counter::Counter;
use server_session::{Fault, Session, SessionIdentity, SessionReport, Stats, wire::encode};
use tokio::time::Instant;

use crate::{
    metrics::{Metrics, seconds},
    recorder::RecordedSession,
    registry::Shown,
    shared::Shared,
    watchers::Watchers,
};

/// How often many unfinished syncs are measured. The cost is proportional to their number.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Up to this number, the syncs are measured every time.
const FEW_SYNCS: usize = 16;

#[derive(Debug)]
pub(crate) struct Telemetry {
    identity: Arc<SessionIdentity>,
    metrics: Metrics,
    watchers: Arc<Watchers>,
    /// The counts that the counters have.
    counted: Stats,
    /// The time of the last measurement of unfinished syncs.
    looked: Option<Instant>,
}

impl Telemetry {
    pub(crate) fn new(identity: &Arc<SessionIdentity>, shared: &Shared) -> Self {
        let metrics = shared.metrics.clone();
        Self {
            identity: Arc::clone(identity),
            counted: Stats::default(),
            looked: None,
            watchers: Arc::clone(&shared.watchers),
            metrics,
        }
    }

    /// Counts what has come since the last call, logs a view that has become complete, and shows the age of the oldest sync.
    pub(crate) fn measure(&mut self, session: &Session, shown: &Shown) {
        let stats = session.stats();
        let counted = mem::replace(&mut self.counted, stats);
        let metrics = &self.metrics;
        let count = |counter: &Counter, of: fn(&Stats) -> u64| {
            counter.inc_by(of(&stats).saturating_sub(of(&counted)));
        };
        count(&metrics.comparisons, |it| it.comparisons);
        count(&metrics.not_compared, |it| it.not_compared);
        let (pods, replica_sets) = (stats.sizes.pods, stats.sizes.replica_sets);
        if stats.synced && !counted.synced {
            tracing::info!(pods, replica_sets, "view complete");
        }
        let syncs = stats.sizes.syncing;
        let is_recent = |looked: Instant| looked.elapsed() < LOOK_EVERY;
        // Many syncs are measured only from time to time. Zero syncs are reported at once.
        if syncs > FEW_SYNCS && self.looked.is_some_and(is_recent) {
            return;
        }
        if syncs > 0 || self.looked.is_some() {
            self.looked = (syncs > 0).then(Instant::now);
            shown.set_longest_sync(session.longest_sync());
        }
    }

    /// Records the time from a frame to its batches.
    pub(crate) fn decided_within(&self, latency: Duration) {
        self.metrics.decision_latency.observe(latency.as_secs_f64());
    }

    /// Records the reports of a step.
    pub(crate) fn observe(&self, session: &mut RecordedSession) {
        while let Some(report) = session.poll_report() {
            self.tell(report);
        }
    }

    fn tell(&self, report: SessionReport) {
        match report {
            SessionReport::Decided {
                record,
                action,
                rule,
            } => self.decided(&record, action, rule),
            SessionReport::Outcomes {
                action,
                result,
                count,
            } => {
                let labels = [("op", action), ("result", result)];
                self.metrics.operations.get_or_create(&labels).inc_by(count);
            }
            SessionReport::NotAccepted {
                rejected,
                fault,
                others,
            } => self.not_accepted(&rejected, fault, others),
            SessionReport::Differs(found) => self.differs(&found),
            SessionReport::ListRequested { kind, cause } => {
                let kind = kind_label(kind);
                self.metrics.resyncs.get_or_create(&[("kind", kind)]).inc();
                tracing::warn!(kind, cause, "asked for a fresh list");
            }
            SessionReport::Controller(report) => self.controller(report),
        }
    }

    fn decided(&self, record: &Arc<v1::DecisionRecord>, action: &'static str, rule: &'static str) {
        self.metrics
            .decisions
            .get_or_create(&[("op", action), ("reason", rule)])
            .inc();
        let v1::DecisionRecord {
            replica_set,
            batch_id,
            operations,
            ..
        } = &**record;
        let (namespace, name) = replica_set
            .as_ref()
            .map_or(("", ""), |set| (&*set.namespace, &*set.name));
        tracing::debug!(
            replica_set = %format_args!("{namespace}/{name}"),
            batch = batch_id, action, operations, rule, "decided"
        );
        self.watchers.publish(&self.identity, record);
    }

    fn differs(&self, found: &v1::Difference) {
        let set = found.replica_set.as_ref();
        let (namespace, name) = set.map_or(("", ""), |set| (&*set.namespace, &*set.name));
        let subject = match found.subject() {
            v1::Subject::Unspecified => "none",
            v1::Subject::Count => "count",
            v1::Subject::Victims => "victims",
            v1::Subject::Status => "status",
            v1::Subject::Adoption => "adoption",
        };
        let departure = match found.departure() {
            v1::Departure::Unspecified => "none",
            v1::Departure::OrderOfDeletion => "order_of_deletion",
            v1::Departure::ReplicaFailure => "replica_failure",
            v1::Departure::NamespaceEnding => "namespace_ending",
            v1::Departure::DeletedByOthers => "deleted_by_others",
        };
        let labels = [("subject", subject), ("departure", departure)];
        self.metrics.differences.get_or_create(&labels).inc();
        tracing::warn!(
            replica_set = %format_args!("{namespace}/{name}"),
            subject, decided = found.decided, done = found.done, why = found.why, departure,
            "the other controller differs"
        );
    }

    fn not_accepted(&self, rejected: &[(v1::Kind, u64)], fault: Fault, others: u64) {
        for (kind, count) in rejected {
            let labels = [("kind", kind.as_str_name())];
            let objects = &self.metrics.rejected_objects;
            objects.get_or_create(&labels).inc_by(*count);
        }
        let Fault {
            kind,
            object,
            text,
            is_quarantined,
        } = fault;
        let v1::ObjectRef {
            namespace,
            name,
            uid,
        } = object;
        let (kind, fault) = (kind.as_str_name(), text);
        let message = if is_quarantined {
            "quarantined"
        } else {
            "object not accepted"
        };
        tracing::warn!(kind, namespace, name, uid, fault, others, "{message}");
    }

    fn controller(&self, report: ControllerReport) {
        match report {
            ControllerReport::Synced { key, error, .. } => match error {
                Some(error) => tracing::debug!(replica_set = %key, error, "sync retried"),
                None => tracing::trace!(replica_set = %key, "synced"),
            },
            ControllerReport::StaleViewSkipped { key, kind } => {
                self.metrics.stale_sync_skips(kind).inc();
                let kind = kind_label(kind);
                tracing::debug!(replica_set = %key, kind, "view is older than a write");
            }
            // The session keeps these reports for its timeline and its last deletions, or tells the agent.
            ControllerReport::Scaled { .. }
            | ControllerReport::Answered(_)
            | ControllerReport::ScaleDown(_)
            | ControllerReport::BeyondMemory { .. } => {}
            ControllerReport::Quarantined { key, detail } => {
                tracing::debug!(replica_set = %key, detail, "left alone");
            }
            ControllerReport::CreatesWait { key, reason, wait } => {
                let reason = encode::reason(reason);
                let (rule, detail) = (reason.rule().as_str_name(), reason.detail);
                let waits = &self.metrics.create_back_offs;
                waits.get_or_create(&[("reason", rule)]).inc();
                let seconds = seconds(wait);
                tracing::warn!(replica_set = %key, rule, detail, seconds, "no pods are created for a while");
            }
        }
    }
}

const fn kind_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pod",
        Kind::ReplicaSet => "replicaset",
    }
}
