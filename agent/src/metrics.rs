//! Metrics of the agent for operators. Labels are bounded: verbs, kinds and classes of the contract.

use std::borrow::Cow;

use agent_core::{
    api::Kind,
    budget::{Change, Hold, Scope, Verb},
    history::WentBack,
    link::Disconnect,
    report::Report,
    rules::Rule,
    take_over::Why,
};
use agent_kube::NO_STATUS;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// The label for Leases, which are read but not watched.
pub(crate) const LEASES: &str = "leases";

/// The agent's metrics. Clones share their counts.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    session_open: Gauge,
    sessions: Counter,
    disconnects: Family<Label, Counter>,
    pub(crate) frames_sent: Counter,
    pub(crate) frames_received: Counter,
    lists: Family<Label, Counter>,
    watch_events: Family<Label, Counter>,
    read_failures: Family<[(&'static str, Cow<'static, str>); 3], Counter>,
    objects_skipped: Counter,
    objects_rejected: Counter,
    batches_refused: Counter,
    operations_refused: Family<Label, Counter>,
    operations: Family<[(&'static str, Cow<'static, str>); 1], Counter>,
    operations_in_flight: Gauge,
    pub(crate) calls: Family<Label, Counter>,
    calls_in_flight: Gauge,
    pub(crate) events_dropped: Counter,
    leading: Family<[(&'static str, String); 1], Gauge>,
    standing_by: Family<Label, Gauge>,
    budget_held: Family<BudgetLabels, Gauge>,
    budget_exceeded: Family<BudgetLabels, Counter>,
    pods_of_others: Counter,
    versions_went_back: Family<Label, Counter>,
}

/// One label: its name and its value.
type Label = [(&'static str, &'static str); 1];
/// The scope and the operation.
type BudgetLabels = [(&'static str, &'static str); 2];

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics: with upstream's names if it has them, otherwise with `decree_agent_…`.
    pub fn register(&self, registry: &mut Registry) {
        self.register_upstream(registry);
        let registry = registry.sub_registry_with_prefix("decree_agent");
        self.register_link(registry);
        self.register_cluster(registry);
    }

    /// Shows an agent that does not act.
    pub(crate) fn clear(&self) {
        self.session_open.set(0);
        self.set_in_flight(0, 0);
        self.set_holds(std::iter::empty());
    }

    /// Sets whether the agent leads by the lease `name`.
    pub fn set_leading(&self, name: &str, leads: bool) {
        let label = [("name", name.to_owned())];
        self.leading.get_or_create(&label).set(leads.into());
    }

    /// Sets what keeps the agent from acting, if anything does.
    pub(crate) fn set_standing_by(&self, cause: Option<&'static str>) {
        for it in Why::CAUSES {
            let gauge = self.standing_by.get_or_create(&[("cause", it)]);
            gauge.set((cause == Some(it)).into());
        }
    }

    pub(crate) fn count_report(&self, report: &Report) {
        match report {
            Report::SessionOpened { .. } => {
                self.sessions.inc();
                self.session_open.set(1);
            }
            Report::Disconnected(cause) => {
                let cause = match cause {
                    Disconnect::Ended => "ended",
                    Disconnect::Lost(_) => "lost",
                    Disconnect::WentBack(_) => "versions_went_back",
                    Disconnect::Superseded(_) => "superseded",
                    Disconnect::Refused { .. } => "refused",
                };
                self.disconnects.get_or_create(&[("cause", cause)]).inc();
                self.session_open.set(0);
            }
            Report::Listed { kind, .. } => {
                self.lists.get_or_create(&[("kind", kind.plural())]).inc();
            }
            Report::Skipped(_) => {
                self.objects_skipped.inc();
            }
            Report::Rejected(_) => {
                self.objects_rejected.inc();
            }
            Report::BatchRefused { .. } => {
                self.batches_refused.inc();
            }
            Report::Refused(refused) => {
                self.refused(refused.rule).inc_by(refused.operations as u64);
            }
            Report::Budget(change) => match &**change {
                Change::Warned(hold) | Change::Held(hold) => {
                    let labels = budget_label(hold.scope.level(), hold.verb);
                    self.budget_exceeded.get_or_create(&labels).inc();
                }
                Change::Ended(_) => {}
            },
            Report::Finished { class, .. } => {
                let labels = [("outcome", class.clone())];
                self.operations.get_or_create(&labels).inc();
            }
            Report::PodOfOther(_) => {
                self.pods_of_others.inc();
            }
            Report::WentBack(WentBack { kind, .. }) => self.count_went_back(kind.plural()),
            Report::Draining
            | Report::OldHistory { .. }
            | Report::ResyncAsked(_)
            | Report::BatchTaken { .. }
            | Report::Shown(_)
            | Report::Noted(_) => {}
        }
    }

    pub(crate) fn set_holds<'a>(&self, holds: impl Iterator<Item = &'a Hold>) {
        let labels = holds.map(|hold| budget_label(hold.scope.level(), hold.verb));
        let labels: Vec<_> = labels.collect();
        for label in budget_labels() {
            let count = labels.iter().filter(|it| **it == label).count();
            set(&self.budget_held.get_or_create(&label), count);
        }
    }

    pub(crate) fn count_went_back(&self, kind: &'static str) {
        let label = [("kind", kind)];
        self.versions_went_back.get_or_create(&label).inc();
    }

    pub(crate) fn count_events(&self, kind: Kind, count: usize) {
        let events = self.watch_events.get_or_create(&[("kind", kind.plural())]);
        events.inc_by(count as u64);
    }

    pub(crate) fn count_read_failure(&self, kind: Kind, verb: &'static str, code: Option<u16>) {
        let code = code.map_or_else(|| NO_STATUS.into(), |code| code.to_string().into());
        let labels = [
            ("kind", kind.plural().into()),
            ("verb", verb.into()),
            ("code", code),
        ];
        self.read_failures.get_or_create(&labels).inc();
    }

    pub(crate) fn set_in_flight(&self, operations: usize, calls: usize) {
        set(&self.operations_in_flight, operations);
        set(&self.calls_in_flight, calls);
    }

    fn refused(&self, rule: Rule) -> Counter {
        self.operations_refused
            .get_or_create_owned(&[("rule", rule.as_str())])
    }

    fn register_upstream(&self, registry: &mut Registry) {
        let help = "1 while this agent leads by the lease of this name, 0 while it stands by";
        registry.register("leader_election_master_status", help, self.leading.clone());
    }

    fn register_link(&self, registry: &mut Registry) {
        let help = "Sessions opened; a steady rise means that sessions do not last";
        registry.register("sessions", help, self.sessions.clone());
        let help = "Frames sent to the server";
        registry.register("frames_sent", help, self.frames_sent.clone());
        let help = "Frames received from the server";
        registry.register("frames_received", help, self.frames_received.clone());
        let help = "Objects that the server did not accept; look at the log";
        registry.register("objects_rejected", help, self.objects_rejected.clone());
        let help = "Batches that the guard or the mode refused";
        registry.register("batches_refused", help, self.batches_refused.clone());
        let help = "1 while the agent has a session, else 0; alert on 0";
        registry.register("session_open", help, self.session_open.clone());
        let help = "Sessions and attempts that ended, by cause";
        registry.register("disconnects", help, self.disconnects.clone());
        let help = "1 while the agent stands by, by cause: the built-in ReplicaSet controller is not declared off, or a controller was found on; look at the log";
        registry.register("standing_by", help, self.standing_by.clone());
    }

    fn register_cluster(&self, registry: &mut Registry) {
        let help = "Objects that could not be projected and were left out; look at the log";
        registry.register("objects_skipped", help, self.objects_skipped.clone());
        let help = "Complete lists read from the cluster, by kind; many mean that watches break";
        registry.register("lists", help, self.lists.clone());
        let help = "Watch events read from the cluster, by kind";
        registry.register("watch_events", help, self.watch_events.clone());
        let help = "Lists and watches that failed, by kind, verb and HTTP status; 403: a permission is missing";
        registry.register("read_failures", help, self.read_failures.clone());
        // Each kind exists from the start, as each rule does.
        for kind in Kind::ALL.map(Kind::plural).into_iter().chain([LEASES]) {
            drop(self.versions_went_back.get_or_create(&[("kind", kind)]));
        }
        let help = "Times that the versions of a kind went back: the cluster was restored, or another one answers";
        registry.register("versions_went_back", help, self.versions_went_back.clone());
        let help = "Operations by outcome: done, or the class of the failure";
        registry.register("operations", help, self.operations.clone());
        // Each rule exists from the start, so that a first refusal shows as an increase.
        for rule in Rule::ALL {
            drop(self.refused(rule));
        }
        let help = "Operations that the agent refused to start, by the rule that they break";
        registry.register("operations_refused", help, self.operations_refused.clone());
        // Each scope exists from the start, as each rule does.
        for labels in budget_labels() {
            drop(self.budget_exceeded.get_or_create(&labels));
            drop(self.budget_held.get_or_create(&labels));
        }
        let help = "Scopes that the budget holds at the moment; resume them when you know why";
        registry.register("budget_held", help, self.budget_held.clone());
        let help = "Times that a limit of the budget was exceeded, or would have been";
        registry.register("budget_exceeded", help, self.budget_exceeded.clone());
        let help = "Pods of ReplicaSets that another controller created while this agent executes decisions: turn it off";
        registry.register("pods_of_others", help, self.pods_of_others.clone());
        let help = "Operations of batches that have no outcome yet";
        let in_flight = self.operations_in_flight.clone();
        registry.register("operations_in_flight", help, in_flight);
        let help = "Calls made to the cluster, by verb";
        registry.register("calls", help, self.calls.clone());
        let help = "Kubernetes events that were not written: too many at once, or refused";
        registry.register("events_dropped", help, self.events_dropped.clone());
        let help = "Calls to the cluster that wait for their answer";
        registry.register("calls_in_flight", help, self.calls_in_flight.clone());
    }
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

const fn budget_label(scope: &'static str, verb: Verb) -> BudgetLabels {
    [("scope", scope), ("operation", verb.as_str())]
}

fn budget_labels() -> impl Iterator<Item = BudgetLabels> {
    let verbs = |scope| Verb::ALL.map(|verb| budget_label(scope, verb));
    Scope::LEVELS.into_iter().flat_map(verbs)
}
