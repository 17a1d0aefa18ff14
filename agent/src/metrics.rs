//! Metrics of the agent for operators. Labels are bounded: verbs, kinds and classes of the contract.

use std::borrow::Cow;

use agent_core::{
    api::Kind,
    budget::{Change, Hold, Scope, Verb},
    link::Disconnect,
    refusal::Rule,
    report::Report,
    take_over::Why,
    watch::history::WentBack,
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use service::metrics;

/// The label for Leases, which are read but not watched.
pub(crate) const LEASES: &str = "leases";

/// The value of the label `code` for a request without an answer, as in client-go.
const NO_STATUS: &str = "<error>";

type Label = [(&'static str, &'static str); 1];
/// The scope and the operation.
type BudgetLabels = [(&'static str, &'static str); 2];

metrics! {
    /// The agent's metrics: with upstream's names if it has them. Clones share their counts.
    pub struct Metrics {}
    session_open: Gauge = "decree_agent_session_open",
        "1 while the agent has a session, else 0; alert on 0";
    sessions: Counter = "decree_agent_sessions",
        "Sessions opened; a steady rise means that sessions do not last";
    disconnects: Family<Label, Counter> = "decree_agent_disconnects",
        "Sessions and attempts that ended, by cause";
    lists: Family<Label, Counter> = "decree_agent_lists",
        "Complete lists read from the cluster, by kind; many mean that watches break";
    read_failures: Family<[(&'static str, Cow<'static, str>); 3], Counter> = "decree_agent_read_failures",
        "Lists and watches that failed, by kind, verb and HTTP status; 403: a permission is missing";
    objects_skipped: Counter = "decree_agent_objects_skipped",
        "Objects that could not be projected and were left out; look at the log";
    objects_rejected: Counter = "decree_agent_objects_rejected",
        "Objects that the server did not accept; look at the log";
    operations_refused: Family<Label, Counter> = "decree_agent_operations_refused",
        "Operations that the agent refused to start, by the rule that they break";
    operations: Family<[(&'static str, Cow<'static, str>); 1], Counter> = "decree_agent_operations",
        "Operations by outcome: done, or the class of the failure";
    operations_in_flight: Gauge = "decree_agent_operations_in_flight",
        "Operations of batches that have no outcome yet";
    calls: Family<Label, Counter> = "decree_agent_calls",
        "Calls made to the cluster, by verb";
    calls_in_flight: Gauge = "decree_agent_calls_in_flight",
        "Calls to the cluster that wait for their answer";
    events_dropped: Counter = "decree_agent_events_dropped",
        "Kubernetes events that were not written: too many at once, or refused";
    leading: Family<[(&'static str, String); 1], Gauge> = "leader_election_master_status",
        "1 while this agent leads by the lease of this name, 0 while it stands by";
    standing_by: Family<Label, Gauge> = "decree_agent_standing_by",
        "1 while the agent stands by, by cause: the built-in ReplicaSet controller is not declared off, or a controller was found on; look at the log";
    budget_held: Family<BudgetLabels, Gauge> = "decree_agent_budget_held",
        "Scopes that the budget holds at the moment; resume them when you know why";
    budget_exceeded: Family<BudgetLabels, Counter> = "decree_agent_budget_exceeded",
        "Times that a limit of the budget was exceeded, or would have been";
    pods_of_others: Counter = "decree_agent_pods_of_others",
        "Pods of ReplicaSets that another controller created while this agent executes decisions: turn it off";
    versions_went_back: Family<Label, Counter> = "decree_agent_versions_went_back",
        "Times that the versions of a kind went back: the cluster was restored, or another one answers";
}

impl Metrics {
    /// Registers the metrics. Each kind, rule and scope exists from the start, so that a first one shows as an increase.
    pub fn register(&self, registry: &mut Registry) {
        for kind in Kind::ALL.map(Kind::plural).into_iter().chain([LEASES]) {
            drop(self.versions_went_back.get_or_create(&[("kind", kind)]));
        }
        for (rule, _) in Rule::ALL {
            drop(self.refused(rule));
        }
        for labels in budget_labels() {
            drop(self.budget_exceeded.get_or_create(&labels));
            drop(self.budget_held.get_or_create(&labels));
        }
        self.register_table(registry);
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
            Report::Refused(refused) => {
                self.refused(refused.rule).inc_by(refused.operations as u64);
            }
            Report::Budget(change) => match &**change {
                Change::Warned(hold) | Change::Held(hold) => {
                    let labels = budget_label(hold.scope, hold.verb);
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
            | Report::AdviceFailed { .. }
            | Report::OldHistory { .. }
            | Report::ResyncAsked(_)
            | Report::Shown(_)
            | Report::Noted(_) => {}
        }
    }

    pub(crate) fn set_holds<'a>(&self, holds: impl Iterator<Item = &'a Hold>) {
        let labels = holds.map(|hold| budget_label(hold.scope, hold.verb));
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

    pub(crate) fn count_read_failure(
        &self,
        kind: &'static str,
        verb: &'static str,
        code: Option<u16>,
    ) {
        let code = code.map_or_else(|| NO_STATUS.into(), |code| code.to_string().into());
        let labels = [("kind", kind.into()), ("verb", verb.into()), ("code", code)];
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
}

fn set(gauge: &Gauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

const fn budget_label(scope: Scope, verb: Verb) -> BudgetLabels {
    [("scope", scope.as_str()), ("operation", verb.as_str())]
}

fn budget_labels() -> impl Iterator<Item = BudgetLabels> {
    let verbs = |scope| Verb::ALL.map(|verb| budget_label(scope, verb));
    Scope::ALL.into_iter().flat_map(verbs)
}
