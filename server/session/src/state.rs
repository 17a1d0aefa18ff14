//! The state of a session behind its frames: the controller, with records, comparisons and reports about it.

use std::sync::Arc;

use decree_api::v1::{self, reconcile_response::Frame};
use decree_core::{
    After, Batch, Controller, ControllerReport, Event, Held, HeldQueue, Key, Kind, NodeChange,
    NotStarted, OperationResult, Outcome, OwnerReference, OwnerView, Pod, PodView, Quarantine,
    ResourceVersion, Sizes, Span, Timestamp, Uid, keep_within,
};
use prost::Message;

use crate::{
    config::{Config, FRAME_BYTES},
    frame_reader::Sink,
    held_message::HeldMessage,
    hello::SessionIdentity,
    refusal::Refusal,
    rejections::Rejections,
    report::{Reports, SessionReport, Stats},
    shadow::Shadow,
    timeline::Timeline,
    wire::{self, Fault, Rejected, Violation, encode},
};

#[derive(Clone, Debug)]
pub(crate) struct SessionState {
    pub(crate) identity: Arc<SessionIdentity>,
    pub(crate) controller: Controller,
    pub(crate) timeline: Timeline,
    /// The comparison with another controller, in modes SHADOW and ADVISE.
    pub(crate) shadow: Option<Shadow>,
    guard: v1::Guard,
    /// The frames for the agent, without batches.
    notices: HeldQueue<HeldMessage<v1::ReconcileResponse>>,
    reports: Reports,
    /// The objects of the current frame that were not accepted.
    rejections: Rejections,
    stats: Stats,
    /// The number of the current frame.
    pub(crate) sequence: u64,
    /// The number of outcomes of batches in flight that have come.
    pub(crate) outcomes: u64,
}

/// Takes the content of one frame into the state.
pub(crate) struct FrameSink<'a> {
    pub(crate) state: &'a mut SessionState,
    pub(crate) now: Timestamp,
    pub(crate) config: &'a Config,
    pub(crate) pauses: &'a dyn Fn() -> bool,
}

impl SessionState {
    pub(crate) fn new(identity: SessionIdentity, controller: Controller, bytes_max: usize) -> Self {
        let has_other = matches!(identity.mode, v1::Mode::Shadow | v1::Mode::Advise);
        Self {
            guard: identity.guard(),
            identity: Arc::new(identity),
            controller,
            timeline: Timeline::new(bytes_max),
            shadow: has_other.then(Shadow::default),
            notices: HeldQueue::default(),
            reports: Reports::default(),
            rejections: Rejections::default(),
            stats: Stats::default(),
            sequence: 0,
            outcomes: 0,
        }
    }

    fn count_outcome(&mut self, outcome: &Outcome) {
        let action = self.controller.inspect().action(outcome.batch);
        self.outcomes += u64::from(action.is_some());
        let action = action.map_or("unknown", wire::action);
        self.reports.count_outcome(action, result(&outcome.result));
    }

    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        if self.controller.poll_timeout().is_some_and(|due| due <= now) {
            self.controller.handle_timeout(now);
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.handle_timeout(now, &self.controller);
            while let Some(found) = shadow.poll_difference(now, self.identity.cluster_ref()) {
                self.reports.push(SessionReport::Differs(Box::new(found)));
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        let due = self.shadow.as_ref().and_then(|shadow| shadow.tick);
        due.into_iter().chain(self.controller.poll_timeout()).min()
    }

    pub(crate) fn notify(&mut self, notice: Frame) {
        let (frame, sequence) = (Some(notice), 0);
        let notice = v1::ReconcileResponse { sequence, frame };
        self.notices.push_back(HeldMessage(notice));
    }

    /// Returns the next frame for the agent: rejections, requests for lists, and questions for costs.
    pub(crate) fn poll_notice(&mut self) -> Option<Frame> {
        self.take_reports();
        let notice = self.notices.pop_front();
        let notice = notice.and_then(|HeldMessage(notice)| notice.frame);
        notice
            .or_else(|| self.poll_request())
            .or_else(|| self.poll_question())
    }

    fn poll_question(&mut self) -> Option<Frame> {
        let question = self.controller.poll_question()?;
        Some(Frame::CostsWanted(encode::question(question)))
    }

    fn poll_request(&mut self) -> Option<Frame> {
        let (kind, cause) = self.controller.poll_request()?;
        let resync = v1::Resync {
            kind: wire::kind_out(kind).into(),
            cause: cause.clone(),
        };
        self.reports
            .push(SessionReport::ListRequested { kind, cause });
        Some(Frame::Resync(resync))
    }

    pub(crate) fn poll_report(&mut self) -> Option<SessionReport> {
        self.take_reports();
        self.reports.pop()
    }

    /// Decides, and returns the batches of the next frame.
    pub(crate) fn poll_batches(&mut self, now: Timestamp) -> Option<v1::Batches> {
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while bytes < FRAME_BYTES
            && let Some(batch) = self.poll_batch(now)
        {
            bytes += batch.encoded_len();
            batches.push(batch);
        }
        (!batches.is_empty()).then_some(v1::Batches { batches })
    }

    /// Decides, and returns the next batch.
    fn poll_batch(&mut self, now: Timestamp) -> Option<v1::Batch> {
        let batch = self.controller.poll_batch(now)?;
        self.record(now, &batch);
        if let Some(shadow) = &mut self.shadow {
            shadow.handle_batch(now, &self.controller, &batch.key);
        }
        Some(wire::batch(batch, &self.guard))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.controller.inspect().sizes().batches_in_flight > 0
    }

    /// Returns the state in short. The memory is that of the whole session.
    pub(crate) fn stats(&self) -> Stats {
        let [comparisons, not_compared] = self.shadow.as_ref().map_or([0; 2], Shadow::comparisons);
        let sizes = self.controller.inspect().sizes();
        Stats {
            sizes: Sizes {
                bytes: sizes.bytes + self.bytes_beside(),
                ..sizes
            },
            comparisons,
            not_compared,
            synced: self.controller.is_synced(),
            pods_version: self.controller.version(Kind::Pod),
            replica_sets_version: self.controller.version(Kind::ReplicaSet),
            ..self.stats
        }
    }

    /// The approximate memory of everything that the session holds beside its controller, in bytes.
    fn bytes_beside(&self) -> usize {
        let Self {
            // Of bounded size.
            identity: _,
            guard: _,
            controller: _,
            timeline,
            shadow,
            notices,
            reports,
            rejections,
            stats: _,
            sequence: _,
            outcomes: _,
        } = self;
        timeline.bytes() + shadow.bytes() + notices.bytes() + reports.bytes() + rejections.bytes()
    }

    /// Checks the limits of the session. Beyond its memory, the content of the largest objects is forgotten.
    pub(crate) fn check(&mut self, config: &Config) -> Result<(), Refusal> {
        if let Some((kind, last, got)) = self.controller.went_back() {
            return Err(Refusal::VersionsWentBack { kind, last, got });
        }
        let max = config.objects_max;
        if self.controller.inspect().objects() > max {
            return Err(Refusal::ObjectsExhausted { max });
        }
        let max = config.bytes_max;
        let left = max.saturating_sub(self.bytes_beside());
        if !keep_within(&mut self.controller, left) {
            return Err(Refusal::MemoryExhausted { max });
        }
        Ok(())
    }

    /// Takes the reports of the controller, and answers the objects that were not accepted.
    pub(crate) fn take_reports(&mut self) {
        while let Some(report) = self.controller.poll_report() {
            match report {
                ControllerReport::ScaleDown(scale_down) => self.timeline.scaled_down(*scale_down),
                ControllerReport::Scaled {
                    key,
                    at,
                    from,
                    to,
                    manager,
                } => self.timeline.scaled(&key.uid, at, (from, to), manager),
                ControllerReport::Answered(answered) => self.timeline.answered(answered),
                ControllerReport::BeyondMemory { key, quarantine } => {
                    self.quarantined(&key, &quarantine);
                }
                report @ (ControllerReport::Synced { .. }
                | ControllerReport::StaleViewSkipped { .. }
                | ControllerReport::Quarantined { .. }
                | ControllerReport::CreatesWait { .. }) => {
                    self.reports.push(SessionReport::Controller(report));
                }
            }
        }
        if let Some((frame, report)) = self.rejections.take() {
            self.notify(Frame::Rejection(frame));
            self.reports.push(report);
        }
    }

    fn record(&mut self, now: Timestamp, batch: &Batch) {
        let rule = batch
            .reasons
            .first()
            .map_or(v1::Rule::Unspecified, |why| wire::rule(why.rule));
        let record = Arc::new(encode::record(now, self.identity.cluster_ref(), batch));
        self.timeline.decided(now, batch, Arc::clone(&record));
        self.reports.push(SessionReport::Decided {
            record,
            action: wire::action(batch.action.kind()),
            rule: rule.as_str_name(),
        });
    }

    /// Tells the agent that a ReplicaSet is quarantined.
    fn quarantined(&mut self, key: &Key, quarantine: &Quarantine) {
        let Quarantine { field, detail } = quarantine.clone();
        let violation = Violation::new(field, Fault::Quarantined, detail);
        let names = [&*key.namespace, &*key.name, &*key.uid.0];
        let rejected = Rejected::new(v1::Kind::ReplicaSet, names, vec![violation]);
        self.rejections.reject(rejected, self.sequence);
    }
}

impl FrameSink<'_> {
    /// Does as [`Self::rejects_kind`] for a whole pod.
    fn rejects_pod(&mut self, pod: &Pod) -> bool {
        let names = [&*pod.namespace, &*pod.name, &*pod.uid.0];
        self.rejects_kind(names, pod.controller.as_ref().map(OwnerReference::view))
    }

    /// Rejects a pod whose controller is a known ReplicaSet by its name and UID, and not by its kind. Returns whether it does.
    fn rejects_kind(&mut self, names: [&str; 3], owner: Option<OwnerView<'_>>) -> bool {
        let other = owner.filter(|owner| !owner.is_replica_set());
        let inspect = self.state.controller.inspect();
        let contradicting =
            other.filter(|owner| inspect.owner(names[0], owner.to_replica_set()).is_some());
        if let Some(owner) = contradicting {
            let violations = vec![Violation::other_kind(owner.kind)];
            self.rejected(Rejected::new(v1::Kind::Pod, names, violations));
        }
        contradicting.is_some()
    }
}

impl Sink for FrameSink<'_> {
    fn is_listed(&self, kind: Kind) -> bool {
        self.state.controller.is_listed(kind)
    }

    fn last_list(&self, kind: Kind) -> Option<ResourceVersion> {
        self.state.controller.last_list(kind)
    }

    fn event(&mut self, event: Event) {
        if let Event::PodApplied(pod) = &event
            && self.rejects_pod(pod)
        {
            return;
        }
        let Self { state, now, .. } = self;
        match &event {
            Event::ReplicaSetApplied(set) => {
                if let Err(quarantine) = &set.selector {
                    state.quarantined(&set.key, quarantine);
                }
            }
            Event::ReplicaSetDeleted { key, .. } => state.timeline.forget(&key.uid),
            Event::PodApplied(_)
            | Event::PodDeleted { .. }
            | Event::SnapshotBegin(_)
            | Event::SnapshotEnd { .. }
            | Event::Bookmark { .. } => {}
        }
        if let Some(shadow) = &mut state.shadow {
            shadow.handle_event(*now, &state.controller, &event);
        }
        state.controller.handle_event(*now, event);
    }

    fn pod(&mut self, pod: &PodView<'_>) {
        if self.state.shadow.is_some() {
            return self.event(Event::PodApplied(pod.to_pod()));
        }
        if self.rejects_kind([pod.namespace, pod.name, pod.uid], pod.controller) {
            return;
        }
        self.state.controller.handle_pod(self.now, pod);
    }

    fn outcome(&mut self, mut outcome: Outcome) {
        // A rejected object counts as not carried.
        if let OperationResult::Done { after, .. } = &mut outcome.result
            && let Some(After::Pod(pod)) = after
            && self.rejects_pod(pod)
        {
            *after = None;
        }
        self.state.count_outcome(&outcome);
        if let Some(shadow) = &mut self.state.shadow {
            shadow.handle_outcome(self.now, &self.state.controller, &outcome.result);
        }
        self.state.controller.handle_outcome(self.now, outcome);
    }

    fn node(&mut self, change: NodeChange) {
        self.state.controller.handle_node(self.now, change);
    }

    fn takes_nodes(&self) -> bool {
        self.state.controller.takes_nodes()
    }

    fn rejected(&mut self, rejected: Rejected) {
        let sequence = self.state.sequence;
        self.state.rejections.reject(rejected, sequence);
    }

    fn costs(&mut self, question: u64, costs: Vec<(Uid, Result<i32, Box<str>>)>) {
        self.state
            .controller
            .handle_costs(self.now, question, costs);
    }

    fn check(&mut self) -> Result<(), Refusal> {
        self.state.check(self.config)
    }

    fn pauses(&self) -> bool {
        (self.pauses)()
    }

    fn view_age(&mut self, age: Span) {
        self.state.stats.view_age = Some(age);
    }
}

fn result(effect: &OperationResult) -> &'static str {
    match effect {
        OperationResult::Done { .. } => "done",
        OperationResult::Failed { class, .. } => wire::class_out(*class).as_str_name(),
        OperationResult::NotStarted(NotStarted::SlowStart) => "not_started_slow_start",
        OperationResult::NotStarted(NotStarted::Guard(_)) => "not_started_guard",
        OperationResult::NotStarted(NotStarted::NotEnforcing) => "not_started_not_enforcing",
    }
}
