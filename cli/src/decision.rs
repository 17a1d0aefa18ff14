//! The output of a decision: one JSON object, or a table with a line for each operation.

use std::{borrow::Cow, time::Duration};

use agent_kube::objects::status_to_json;
use decree_api::v1::{self, Rule};
use decree_core::wording::count;
use serde_json::{Value, json};

use crate::{
    age,
    exit::Failure,
    format::Format,
    page::{Io, Page},
    table::{NONE, Table},
};

/// Writes decisions as one table, or each as a separate object.
pub(crate) fn write(
    output: Format,
    io: &mut Io<'_>,
    decisions: impl IntoIterator<Item = v1::Decision>,
) -> Result<(), Failure> {
    if output.is_for_people() {
        let table = table(Page::new(io), output.is_wide(), decisions);
        return Ok(table.write(io.stdout, 0)?);
    }
    decisions.into_iter().try_for_each(|decision| {
        let set = name(decision.replica_set.as_ref());
        output.write(io.stdout, &to_json(&decision), &[set])
    })
}

fn table(page: Page, is_wide: bool, decisions: impl IntoIterator<Item = v1::Decision>) -> Table {
    let headers = ["REPLICASET", "ACTION", "POD", "RULE", "DETAIL"];
    let mut table = Table::new(page, headers);
    for decision in decisions {
        let set = path(decision.replica_set.as_ref());
        for (action, pod, rule, detail) in lines(&decision) {
            table.row([
                set.clone(),
                action.into(),
                pod.into_owned(),
                word(rule).into(),
                detail_for(rule, detail, is_wide),
            ]);
        }
    }
    table
}

/// The detail for people. If UIDs decided, the UIDs are left out, because they explain nothing.
fn detail_for(rule: Rule, mut detail: String, is_wide: bool) -> String {
    if rule == Rule::Uid
        && !is_wide
        && let Some(uids) = detail.rfind(", uid ")
    {
        detail.truncate(uids);
    }
    detail
}

/// The word of a rule, such as `NOT_READY`.
pub(crate) fn word(rule: Rule) -> &'static str {
    let name = rule.as_str_name();
    name.strip_prefix("RULE_").unwrap_or(name)
}

/// The JSON that `decree decide --help` promises.
fn to_json(decision: &v1::Decision) -> Value {
    let deletes = decision.deletes.iter().map(|victim| {
        let (rule, detail) = because(victim.reason.as_ref());
        json!({"name": name(victim.pod.as_ref()), "reason": {"rule": word(rule), "detail": detail}})
    });
    json!({
        "replicaSet": path(decision.replica_set.as_ref()),
        "creates": {"count": decision.creates.len(), "names": sorted(&decision.creates)},
        "deletes": deletes.collect::<Vec<_>>(),
        "adopts": names(&decision.adopts),
        "releases": names(&decision.releases),
        "status": decision.status.as_ref().map(status_to_json),
        "requeueAfterSeconds": decision.requeue_after.as_ref().map(seconds),
        "quarantined": decision.quarantined,
    })
}

/// An integer for whole seconds, as in Kubernetes.
fn seconds(wait: &prost_types::Duration) -> Value {
    match wait.nanos {
        0 => wait.seconds.into(),
        _ => span(wait).as_secs_f64().into(),
    }
}

fn span(wait: &prost_types::Duration) -> Duration {
    Duration::try_from(*wait).unwrap_or_default()
}

/// The word for an action.
pub(crate) const fn action(action: v1::Action) -> &'static str {
    match action {
        v1::Action::Unspecified => "unknown",
        v1::Action::Create => "create",
        v1::Action::Delete => "delete",
        v1::Action::Claim => "claim",
        v1::Action::WriteStatus => "status",
        v1::Action::Advise => "advise",
    }
}

/// The action, the pod, the rule and its detail.
type Line<'a> = (&'static str, Cow<'a, str>, Rule, String);

/// The operations of a decision, or if it has none, the reasons. The names of pods to create are not told: the server draws others.
fn lines(decision: &v1::Decision) -> Vec<Line<'_>> {
    let detail = |rule| {
        let reason = decision.reasons.iter().find(|it| it.rule() == rule);
        reason.map_or_else(String::new, |it| it.detail.clone())
    };
    let operations = [
        ("adopt", names(&decision.adopts), Rule::OrphanMatches),
        ("release", names(&decision.releases), Rule::NoLongerMatches),
    ];
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (action, pods, rule) in operations {
        let pods = pods.into_iter();
        lines.extend(pods.map(|pod| (action, pod.into(), rule, detail(rule))));
    }
    if !decision.creates.is_empty() {
        let pods = count(decision.creates.len(), "pod").to_string();
        let is_why = |it: &&v1::Reason| matches!(it.rule(), Rule::TooFewReplicas | Rule::Surge);
        let (rule, detail) = because(decision.reasons.iter().find(is_why));
        lines.push(("create", pods.into(), rule, detail.to_owned()));
    }
    lines.extend(decision.deletes.iter().map(|victim| {
        let (rule, detail) = because(victim.reason.as_ref());
        let pod = name(victim.pod.as_ref());
        ("delete", pod.into(), rule, detail.to_owned())
    }));
    lines.extend(decision.status.as_ref().map(|it| {
        let (none, rule) = (NONE.into(), Rule::StatusDiffers);
        ("status", none, rule, status(it))
    }));
    lines.extend(decision.requeue_after.as_ref().map(|wait| {
        let detail = format!("next check in {}", age::human(span(wait)));
        ("wait", NONE.into(), Rule::AvailabilityCheck, detail)
    }));
    let of_creates = |it: &&v1::Reason| it.rule() == Rule::Surge && !decision.creates.is_empty();
    let others = decision.reasons.iter().filter(|it| !of_creates(it));
    lines.extend(others.filter_map(remark));
    lines
}

/// The numbers of a status, and the reason of a failure.
pub(crate) fn status(status: &v1::ReplicaSetStatus) -> String {
    let mut conditions = status.conditions.iter();
    let failure = conditions.find(|condition| condition.r#type == "ReplicaFailure");
    let failure = failure.map(|it| format!(", ReplicaFailure {}", it.reason));
    format!(
        "{}, {} fully labeled, {} ready, {} available, {} terminating{}",
        count(status.replicas, "replica"),
        status.fully_labeled_replicas,
        status.ready_replicas,
        status.available_replicas,
        status.terminating_replicas.unwrap_or(0),
        failure.unwrap_or_default(),
    )
}

/// A line for a reason that belongs to no operation.
fn remark(reason: &v1::Reason) -> Option<Line<'_>> {
    let rule = reason.rule();
    let shown = matches!(
        rule,
        Rule::TooFewReplicas
            | Rule::TooManyReplicas
            | Rule::OrphanMatches
            | Rule::NoLongerMatches
            | Rule::StatusDiffers
            | Rule::AvailabilityCheck
    );
    (!shown).then(|| ("none", NONE.into(), rule, reason.detail.clone()))
}

fn because(reason: Option<&v1::Reason>) -> (Rule, &str) {
    reason.map_or((Rule::Unspecified, ""), |reason| {
        (reason.rule(), &reason.detail)
    })
}

fn names(pods: &[v1::ObjectRef]) -> Vec<&str> {
    sorted(pods.iter().map(|pod| &pod.name))
}

fn sorted<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    names
}

pub(crate) fn name(object: Option<&v1::ObjectRef>) -> &str {
    object.map_or(NONE, |object| &object.name)
}

/// Formats as `NAMESPACE/NAME`.
pub(crate) fn path(object: Option<&v1::ObjectRef>) -> String {
    object.map_or_else(
        || NONE.to_owned(),
        |object| format!("{}/{}", object.namespace, object.name),
    )
}

pub(crate) fn reason(reason: &v1::Reason) -> String {
    reason_for(reason, true)
}

/// A reason for people, with UIDs only if `is_wide`.
pub(crate) fn reason_for(reason: &v1::Reason, is_wide: bool) -> String {
    let rule = reason.rule();
    match detail_for(rule, reason.detail.clone(), is_wide) {
        detail if detail.is_empty() => word(rule).to_owned(),
        detail => format!("{}: {detail}", word(rule)),
    }
}

/// The pods of a decision; a victim with the rule that chose it.
pub(crate) fn targets(record: &v1::DecisionRecord) -> String {
    let each = record.targets.iter().map(|target| match &target.reason {
        Some(it) if it.rule() == Rule::Advice => format!("{} ({})", target.name, it.detail),
        Some(reason) => format!("{} ({})", target.name, word(reason.rule())),
        None => target.name.clone(),
    });
    let mut text = each.collect::<Vec<_>>().join(", ");
    let left = unnamed(record);
    if !record.targets.is_empty() && left > 0 {
        text.push_str(&format!(" and {left} more"));
    }
    text
}

/// The number of operations that the record does not name one by one.
fn unnamed(record: &v1::DecisionRecord) -> usize {
    usize::try_from(record.operations)
        .unwrap_or(0)
        .saturating_sub(record.targets.len())
}
