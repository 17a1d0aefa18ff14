//! The cause of a ReplicaSet's state in one sentence, for people. The command line, the console and programs all use this sentence.
//!
//! A sentence begins with the cause. The message of an agent or a cluster follows: in one line, shortened, and without characters that
//! control a terminal. In shadow and dry-run mode, causes are those of the cluster: the agent's decisions, which it does not execute, cause
//! nothing. Namespaces and names need no quotes in a command, as the wire accepts only DNS labels and subdomains for them.

mod agent;
mod finding;
mod flapping;
mod refused;
mod words;

use decree_api::{
    causes,
    v1::{self, Rule, Severity},
};
use decree_core::{
    ActionKind, Answered, Span, Timestamp,
    wording::{NODES_AWAITED, count},
};

pub(crate) use self::flapping::Flapping;
use self::{
    finding::{Names, blocked, passing, said},
    words::short,
};
use crate::wire::decode;

/// The time after which a ReplicaSet that has not converged is slow.
const SLOW: Span = Span::seconds(60);

/// The facts about a ReplicaSet that its summary lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// The time of the question.
    pub(crate) now: Timestamp,
    /// Failures in a row.
    pub(crate) failures: u32,
    /// The result of its newest attempt; `None` if this session has seen none.
    pub(crate) attempt: Option<&'a Answered>,
    /// One of its unready pods.
    pub(crate) unready: Option<&'a str>,
    /// How its desired pods go up and down.
    pub(crate) flapping: Option<&'a Flapping>,
}

pub(crate) fn cause(summary: &v1::ReplicaSetSummary, known: &Known<'_>) -> v1::Cause {
    let mut cause = find(summary, known);
    if cause.severity() == Severity::Working && is_slow(summary, known) {
        cause.set_severity(Severity::Slow);
    }
    cause
}

fn is_slow(summary: &v1::ReplicaSetSummary, known: &Known<'_>) -> bool {
    let since = decode::timestamp("", summary.diverge_time.as_ref());
    let since = since.ok().flatten();
    since.is_some_and(|since| known.now.since(since) >= SLOW)
}

/// Returns the first cause that applies, from the one that explains all others down to the number of pods.
fn find(summary: &v1::ReplicaSetSummary, known: &Known<'_>) -> v1::Cause {
    let object = summary.replica_set.as_ref();
    let names = Names {
        namespace: object.map_or("", |it| &it.namespace),
        name: object.map_or("", |it| &it.name),
    };
    let wanted = wanted(summary);
    let is_converged = summary.active == wanted && summary.available == wanted;
    let advance = reason(summary, Rule::Surge).and_then(|it| it.split_once(": "));
    let in_sync = || in_sync(&said("In sync", advance.map_or("", |(_, why)| why)));
    let flaps = || {
        let owner = summary.controller.as_ref();
        Some(flapping::cause(known.flapping?, owner, names))
    };
    left_alone(summary, names)
        .or_else(|| without_view(summary))
        .or_else(|| (is_converged && known.failures == 0).then(|| flaps().unwrap_or_else(in_sync)))
        .or_else(|| held_back(summary, names))
        .or_else(|| refused(summary, known, names))
        .or_else(flaps)
        .or_else(|| is_converged.then(in_sync))
        .unwrap_or_else(|| progress(summary, known, names))
}

/// The desired pods, and those to have in advance of evictions.
const fn wanted(summary: &v1::ReplicaSetSummary) -> i32 {
    summary.replicas.saturating_add(summary.in_advance)
}

/// Whether the agent executes decisions. Without a session, causes are as if it did.
fn is_enforced(summary: &v1::ReplicaSetSummary) -> bool {
    matches!(summary.mode(), v1::Mode::Unspecified | v1::Mode::Enforce)
}

/// Whether the agent, which else only watches, could not write deletion costs.
fn is_refused_advice(answered: &Answered) -> bool {
    answered.action == ActionKind::Advise && answered.failure.is_some()
}

fn in_sync(text: &str) -> v1::Cause {
    v1::Cause {
        severity: Severity::InSync.into(),
        ..passing(text, "", "")
    }
}

fn left_alone(summary: &v1::ReplicaSetSummary, names: Names<'_>) -> Option<v1::Cause> {
    if let Some(why) = reason(summary, Rule::Quarantined) {
        let text = format!("{}: {}", causes::QUARANTINED, short(why));
        return Some(blocked(text, "", names.show()));
    }
    reason(summary, Rule::BeingDeleted)?;
    Some(in_sync("Being deleted: its pods are left alone"))
}

fn without_view(summary: &v1::ReplicaSetSummary) -> Option<v1::Cause> {
    let (text, next) = match reason(summary, Rule::PartialView) {
        Some(NODES_AWAITED) => (
            "The agent's list of nodes is not complete",
            "decree check --nodes",
        ),
        Some(_) => ("The agent's list is not complete", ""),
        None => {
            reason(summary, Rule::ViewOlderThanWrite)?;
            ("The agent's list does not show the last write", "")
        }
    };
    Some(passing(text, text, next))
}

/// The agent, the cluster or the pods themselves hold an attempt back.
fn held_back(summary: &v1::ReplicaSetSummary, names: Names<'_>) -> Option<v1::Cause> {
    if let Some(words) = reason(summary, Rule::RefusedByAgent) {
        return Some(agent::refusal(words, names));
    }
    if let Some(words) = reason(summary, Rule::Throttled) {
        let what = "The API server asks to wait";
        return Some(passing(said(what, words), what, ""));
    }
    let found = |rule, cause| {
        let why = causes::what_happened(reason(summary, rule)?);
        Some(said(cause, why))
    };
    if let Some(text) = found(Rule::PodsDoNotLast, causes::PODS_DO_NOT_LAST) {
        return Some(blocked(text, "", names.describe()));
    }
    // For advice, no delete waits.
    let deletes = is_enforced(summary).then_some((Rule::CostsAsked, "Deletes wait"));
    let creates = Some((Rule::AfterTermination, "Creates wait"));
    let mut waits = creates.into_iter().chain(deletes);
    if let Some(text) = waits.find_map(|(rule, what)| found(rule, what)) {
        return Some(passing(text, "", names.explain()));
    }
    let text = found(Rule::ManyUnassigned, causes::CREATES_ARE_SLOW)?;
    Some(passing(text, "", names.explain()))
}

/// The cluster refused the newest attempt, or, if this session has executed none, the last attempt of another controller. That is over if
/// the number of pods is right and nothing is repeated.
fn refused(
    summary: &v1::ReplicaSetSummary,
    known: &Known<'_>,
    names: Names<'_>,
) -> Option<v1::Cause> {
    if known.failures == 0 && summary.active == wanted(summary) {
        return None;
    }
    let is_ours = |it: &&Answered| is_enforced(summary) || is_refused_advice(it);
    if let Some(answered) = known.attempt.filter(is_ours) {
        let class = Some(answered.failure?);
        let is_slow = is_slow(summary, known);
        return refused::finding(answered.action, class, &answered.message, names, is_slow);
    }
    if summary.failure.is_empty() {
        return None;
    }
    let (action, words) = refused::action(&summary.failure);
    refused::finding(action, None, words, names, false)
}

fn progress(summary: &v1::ReplicaSetSummary, known: &Known<'_>, names: Names<'_>) -> v1::Cause {
    let v1::ReplicaSetSummary {
        active,
        ready,
        available,
        ..
    } = *summary;
    let replicas = wanted(summary);
    let (all, explain) = (count(replicas, "pod"), names.explain());
    let [creates, deletes] = if is_enforced(summary) {
        ["Creates", "Deletes"]
    } else {
        ["Missing:", "Surplus:"]
    };
    if active < replicas {
        let lacking = replicas.abs_diff(active);
        return passing(format!("{creates} {lacking} of {all}"), "", explain);
    }
    if active > replicas {
        let (surplus, all) = (active.abs_diff(replicas), count(active, "pod"));
        return passing(format!("{deletes} {surplus} of {all}"), "", explain);
    }
    let (have, what) = if ready < replicas {
        (ready, "ready")
    } else {
        (available, "available yet")
    };
    let lacking = i64::from(replicas) - i64::from(have);
    let describe = |pod| format!("kubectl -n {} describe pod {pod}", names.namespace);
    let next = known.unready.map_or(explain, describe);
    let text = format!("{lacking} of {all} not {what}");
    // The most frequent reason comes first.
    let why = summary.not_ready.iter().find(|it| !it.ended);
    let why = why.filter(|it| ready < replicas && !it.reason.is_empty());
    let reason = why.map_or("", |it| &it.reason);
    let group = why.map_or_else(String::new, |_| said("Pods not ready", reason));
    passing(said(&text, reason), group, next)
}

/// Returns the detail of the first reason of a rule.
fn reason(summary: &v1::ReplicaSetSummary, rule: Rule) -> Option<&str> {
    let reason = summary.reasons.iter().find(|it| it.rule() == rule);
    reason.map(|reason| reason.detail.as_str())
}

#[cfg(test)]
mod tests;
