//! Turns what a session reports into logs, metrics and the decisions that others watch.

use std::{sync::Arc, time::Duration};

use decree::v1;
use prometheus_client::metrics::histogram::Histogram;
use server_core::Kind;
use server_session::{Identity, Report, Session, Stats};

use super::gauges::Gauges;
use crate::{metrics::Metrics, shared::Shared, watchers::Watchers};

/// What observes one session.
#[derive(Debug)]
pub(crate) struct Telemetry {
    identity: Arc<Identity>,
    metrics: Metrics,
    watchers: Arc<Watchers>,
    gauges: Gauges,
    work: Histogram,
}

// === impl Telemetry ===

impl Telemetry {
    pub(crate) fn new(identity: &Arc<Identity>, shared: &Shared) -> Self {
        let metrics = shared.metrics.clone();
        Self {
            identity: Arc::clone(identity),
            gauges: Gauges::new(identity, metrics.clone()),
            work: metrics.queue().work,
            watchers: Arc::clone(&shared.watchers),
            metrics,
        }
    }

    /// Shows what the session holds.
    pub(crate) fn measure(&mut self, stats: Stats) {
        self.gauges.set(stats);
    }

    /// Tells what the session reports of a step that took so long.
    pub(crate) fn observe(&mut self, session: &mut Session, took: Duration) {
        let mut decided = 0_u32;
        while let Some(report) = session.poll_report() {
            decided += u32::from(matches!(report, Report::Decided { .. }));
            self.tell(report);
        }
        // The batches of a frame are decided in one go and share its time.
        for _ in 0..decided {
            self.work.observe((took / decided).as_secs_f64());
        }
    }

    fn tell(&self, report: Report) {
        match report {
            Report::Decided {
                record,
                action,
                rule,
            } => self.decided(&record, action, rule),
            Report::Outcomes {
                action,
                result,
                count,
            } => {
                let labels = [("op", action), ("result", result)];
                self.metrics.operations.get_or_create(&labels).inc_by(count);
            }
            Report::Rejected {
                kind,
                object,
                fault,
            } => self.rejected(kind, &object, fault),
            Report::Quarantined { key, field, detail } => {
                tracing::warn!(replica_set = %key, field, detail, "quarantined");
            }
            Report::Differs {
                key,
                subject,
                departure,
                decided,
                done,
            } => {
                let labels = [("subject", subject), ("departure", departure)];
                self.metrics.differences.get_or_create(&labels).inc();
                tracing::warn!(replica_set = %key, subject, decided, done, departure, "the other controller differs");
            }
            Report::ViewComplete { pods, replica_sets } => {
                tracing::info!(pods, replica_sets, "view complete");
            }
            Report::Controller(report) => self.controller(report),
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

    fn rejected(&self, kind: v1::Kind, object: &v1::ObjectRef, fault: Option<String>) {
        let kind = kind.as_str_name();
        self.metrics
            .rejected_objects
            .get_or_create(&[("kind", kind)])
            .inc();
        if let Some(fault) = fault {
            let v1::ObjectRef {
                namespace,
                name,
                uid,
            } = object;
            tracing::warn!(kind, namespace, name, uid, fault, "object not accepted");
        }
    }

    fn controller(&self, report: server_core::Report) {
        use server_core::Report;
        match report {
            Report::Synced { key, error, .. } => match error {
                Some(error) => {
                    tracing::debug!(replica_set = %key, error, "sync is tried again");
                }
                None => tracing::trace!(replica_set = %key, "synced"),
            },
            Report::StaleViewSkipped { key, kind } => {
                self.metrics.stale_sync_skips(kind).inc();
                let kind = kind_label(kind);
                tracing::debug!(replica_set = %key, kind, "view is older than a write");
            }
            Report::Quarantined { key, detail } => {
                tracing::debug!(replica_set = %key, detail, "left alone");
            }
            Report::OrphanMatchesMany {
                pod: (namespace, name),
                matches,
            } => {
                tracing::debug!(%namespace, pod = %name, matches, "more than one replica set selects an orphan");
            }
            Report::DeletionAgeRatio(ratio) => {
                let thousandths = u32::try_from(ratio.0).unwrap_or(u32::MAX);
                let ratio = f64::from(thousandths) / 1_000.0;
                self.metrics.deletion_age_ratio.observe(ratio);
            }
            Report::ResyncNeeded { kind, cause } => {
                let kind = kind_label(kind);
                self.metrics.resyncs.get_or_create(&[("kind", kind)]).inc();
                tracing::warn!(kind, cause, "asked for a fresh list");
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
