//! One session's controller with all that is counted, recorded and shown about it. Nothing here waits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use decree::v1::{self, reconcile_response::Frame};
use prometheus_client::metrics::{counter::Counter, histogram::Histogram};
use prost::Message;
use server_core::{
    Batch, BatchId, Config, Controller, Effect, Event, Key, Kind, NotStarted, Outcome, Quarantine,
    Report, Span, Timestamp,
};

use super::{gauges::Gauges, hello::Identity, intake::Sink, mirror::Mirror};
use crate::{
    metrics::Metrics,
    watchers::Watchers,
    wire::{self, Rejected, encode},
};

/// How many bytes of batches are put together in a frame before it leaves.
const FRAME_BYTES: usize = 256 << 10;
/// How many decisions a session remembers for inspection.
const RECENT_MAX: usize = 512;
/// How many objects' rejections are remembered so that each is logged once.
const LOGGED_MAX: usize = 1_000;
/// The reason that a rejection gives for a ReplicaSet that was taken in and is left alone.
const QUARANTINED: &str = "QUARANTINED";

/// The controller and its clerks.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(super) identity: Arc<Identity>,
    pub(super) controller: Controller,
    pub(super) recent: VecDeque<Arc<v1::DecisionRecord>>,
    pub(super) in_flight: BTreeMap<BatchId, InFlight>,
    pub(super) view_age: Option<Span>,
    /// What another controller does, in mode SHADOW.
    pub(super) mirror: Option<Mirror>,
    now: Timestamp,
    sequence: u64,
    guard: v1::Guard,
    metrics: Metrics,
    watchers: Arc<Watchers>,
    gauges: Gauges,
    work: Histogram,
    pod_events: Counter,
    replica_set_events: Counter,
    notices: Vec<Frame>,
    logged: BTreeSet<(String, String, String)>,
    held_back: Option<v1::Batch>,
    synced: bool,
}

/// A batch that left and has outcomes due.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(super) action: &'static str,
    pub(super) key: Key,
    due: usize,
}

// === impl Desk ===

impl Desk {
    pub(crate) fn new(
        identity: Arc<Identity>,
        config: Config,
        metrics: Metrics,
        watchers: Arc<Watchers>,
    ) -> Self {
        let gauges = Gauges::new(&identity, metrics.clone());
        let events = |kind| metrics.events.get_or_create_owned(&[("kind", kind)]);
        Self {
            guard: identity.guard(),
            controller: Controller::new(config),
            recent: VecDeque::new(),
            in_flight: BTreeMap::new(),
            view_age: None,
            mirror: Mirror::of(&identity, &metrics),
            now: Timestamp::default(),
            sequence: 0,
            gauges,
            work: metrics.queue().work,
            pod_events: events("pod"),
            replica_set_events: events("replicaset"),
            notices: Vec::new(),
            logged: BTreeSet::new(),
            held_back: None,
            synced: false,
            identity,
            metrics,
            watchers,
        }
    }

    /// Tells the time.
    pub(crate) const fn tell(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Tells which frame is taken next.
    pub(crate) const fn expect(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Lets time pass.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        self.now = now;
        if self.controller.poll_timeout().is_some_and(|due| due <= now) {
            self.controller.handle_timeout(now);
        }
        if let Some(mirror) = &mut self.mirror {
            mirror.handle_timeout(now, &self.controller);
        }
    }

    /// Returns when time must pass without anything happening.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let mirror = self.mirror.as_ref().and_then(Mirror::poll_timeout);
        [self.controller.poll_timeout(), mirror]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns what the agent is to be told beside batches: rejections, and lists asked for.
    pub(crate) fn poll_notices(&mut self) -> Vec<Frame> {
        while let Some(report) = self.controller.poll_report() {
            self.note(report);
        }
        std::mem::take(&mut self.notices)
    }

    /// Returns the next frame of work, or `None` when there is nothing to do.
    pub(crate) fn poll_batches(&mut self, now: Timestamp) -> Option<Frame> {
        self.now = now;
        let mut batches: Vec<_> = self.held_back.take().into_iter().collect();
        let mut bytes: usize = batches.iter().map(Message::encoded_len).sum();
        while bytes < FRAME_BYTES {
            let Some(batch) = self.poll_batch() else {
                break;
            };
            let size = batch.encoded_len();
            if bytes > 0 && bytes.saturating_add(size) > FRAME_BYTES {
                self.held_back = Some(batch);
                break;
            }
            bytes = bytes.saturating_add(size);
            batches.push(batch);
        }
        (!batches.is_empty()).then_some(Frame::Batches(v1::Batches { batches }))
    }

    /// Brings the gauges up to date.
    pub(crate) fn measure(&mut self) {
        self.gauges.set(self.controller.sizes());
        let synced = self.controller.is_synced();
        if synced && !self.synced {
            let sizes = self.controller.sizes();
            tracing::info!(
                pods = sizes.pods,
                replica_sets = sizes.replica_sets,
                "view complete"
            );
        }
        self.synced = synced;
    }

    /// Returns whether outcomes are due.
    pub(crate) fn is_busy(&self) -> bool {
        self.controller.sizes().batches_in_flight > 0
    }

    /// Returns how many objects are held.
    pub(crate) fn objects(&self) -> usize {
        let sizes = self.controller.sizes();
        sizes.pods.saturating_add(sizes.replica_sets)
    }

    fn poll_batch(&mut self) -> Option<v1::Batch> {
        let started = std::time::Instant::now();
        let batch = self.controller.poll_batch(self.now)?;
        self.work.observe(started.elapsed().as_secs_f64());
        self.record(&batch);
        if let Some(mirror) = &mut self.mirror {
            mirror.decided(self.now, &batch);
        }
        Some(encode::batch(batch, &self.guard))
    }

    fn record(&mut self, batch: &Batch) {
        let action = wire::action(&batch.action);
        let rule = batch
            .reasons
            .first()
            .map_or("RULE_UNSPECIFIED", |why| wire::rule(why.rule).as_str_name());
        self.metrics
            .decisions
            .get_or_create(&[("op", action), ("reason", rule)])
            .inc();
        let due = batch.action.operations();
        tracing::debug!(replica_set = %batch.key, batch = batch.id.0, action, operations = due, rule, "decided");
        self.in_flight.insert(
            batch.id,
            InFlight {
                action,
                key: batch.key.clone(),
                due,
            },
        );
        let record = Arc::new(encode::record(self.now, self.identity.cluster(), batch));
        self.watchers.publish(&self.identity, &record);
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(record);
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Synced {
                key,
                error: Some(error),
                ..
            } => {
                tracing::debug!(replica_set = %key, error, "sync is tried again");
            }
            Report::Synced {
                key, error: None, ..
            } => {
                tracing::trace!(replica_set = %key, "synced");
            }
            Report::StaleViewSkipped { key, kind } => {
                self.metrics.stale_sync_skips(kind).inc();
                tracing::debug!(replica_set = %key, kind = kind_label(kind), "view is older than a write");
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
                self.metrics
                    .deletion_age_ratio
                    .observe(f64::from(thousandths) / 1_000.0);
            }
            Report::ResyncNeeded { kind, cause } => {
                let kind_name = kind_label(kind);
                self.metrics
                    .resyncs
                    .get_or_create(&[("kind", kind_name)])
                    .inc();
                tracing::warn!(kind = kind_name, cause, "asked for a fresh list");
                self.notices.push(Frame::Resync(v1::Resync {
                    kind: wire::kind_out(kind).into(),
                    cause,
                }));
            }
        }
    }

    /// Tells the agent that a ReplicaSet is left alone.
    fn quarantined(&mut self, key: &Key, Quarantine { field, detail }: &Quarantine) {
        let object = wire::key_ref(key);
        if self.first_time(&object, detail) {
            tracing::warn!(replica_set = %key, field, detail, "quarantined");
        }
        let violation = v1::FieldViolation {
            field: field.clone(),
            description: detail.clone(),
            reason: QUARANTINED.to_owned(),
        };
        self.notices.push(Frame::Rejection(v1::Rejection {
            kind: v1::Kind::ReplicaSet.into(),
            object: Some(object),
            violations: vec![violation],
            sequence: self.sequence,
        }));
    }

    fn first_time(&mut self, object: &v1::ObjectRef, fault: &str) -> bool {
        let entry = (
            object.namespace.clone(),
            object.name.clone(),
            fault.to_owned(),
        );
        if self.logged.len() >= LOGGED_MAX {
            self.logged.clear();
        }
        self.logged.insert(entry)
    }

    fn settle(&mut self, outcome: &Outcome) {
        let batch = self.in_flight.get_mut(&outcome.batch);
        let action = batch.as_ref().map_or("unknown", |batch| batch.action);
        let result = result(&outcome.result);
        self.metrics
            .operations
            .get_or_create(&[("op", action), ("result", result)])
            .inc();
        if let Some(batch) = batch {
            batch.due = batch.due.saturating_sub(1);
            if batch.due == 0 {
                self.in_flight.remove(&outcome.batch);
            }
        }
    }
}

impl Sink for Desk {
    fn event(&mut self, event: Event) {
        match &event {
            Event::PodApplied(_) | Event::PodDeleted { .. } => {
                self.pod_events.inc();
            }
            Event::ReplicaSetApplied(set) => {
                self.replica_set_events.inc();
                if let Err(quarantine) = &set.selector {
                    self.quarantined(&set.key, quarantine);
                }
            }
            Event::ReplicaSetDeleted { .. } => {
                self.replica_set_events.inc();
            }
            Event::SnapshotBegin(_) | Event::SnapshotEnd { .. } | Event::Bookmark { .. } => {}
        }
        if let Some(mirror) = &mut self.mirror {
            mirror.event(self.now, &self.controller, &event);
        }
        self.controller.handle_event(self.now, event);
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.settle(&outcome);
        self.controller.handle_outcome(self.now, outcome);
    }

    fn rejected(&mut self, rejected: Rejected) {
        let kind = rejected.kind.as_str_name();
        self.metrics
            .rejected_objects
            .get_or_create(&[("kind", kind)])
            .inc();
        let fault: Vec<_> = rejected
            .violations
            .iter()
            .map(ToString::to_string)
            .collect();
        let fault = fault.join("; ");
        if self.first_time(&rejected.object, &fault) {
            let v1::ObjectRef {
                namespace,
                name,
                uid,
            } = &rejected.object;
            tracing::warn!(kind, namespace, name, uid, fault, "object not accepted");
        }
        self.notices
            .push(Frame::Rejection(rejected.into_frame(self.sequence)));
    }

    fn view_age(&mut self, age: Span) {
        self.view_age = Some(age);
        self.gauges.set_view_age(age);
    }
}

const fn kind_label(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pod",
        Kind::ReplicaSet => "replicaset",
    }
}

fn result(effect: &Effect) -> &'static str {
    match effect {
        Effect::Done { .. } => "done",
        Effect::Failed { class, .. } => wire::class_out(*class).as_str_name(),
        Effect::NotStarted(NotStarted::SlowStart) => "not_started_slow_start",
        Effect::NotStarted(NotStarted::Guard) => "not_started_guard",
        Effect::NotStarted(NotStarted::NotEnforcing) => "not_started_not_enforcing",
    }
}

// === impl InFlight ===

impl InFlight {
    /// Returns whether the batch serves this ReplicaSet.
    pub(super) fn serves(&self, namespace: &str, name: &str) -> bool {
        *self.key.namespace == *namespace && *self.key.name == *name
    }
}
