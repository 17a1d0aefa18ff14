//! The limits of creates that upstream does not have. Each has a reason that says why creates wait, for how long, and what a person can do.

use crate::{
    config::{Brake, Config},
    index::{Index, Set, SetId},
    object::{Span, Timestamp},
    reason::{Reason, Rule},
    wording,
};

/// When to look again whether the pods being deleted have ended.
const LOOK_AGAIN: Span = Span::seconds(60);

#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) admitted: usize,
    /// When more may be created, if none may now.
    pub(crate) until: Timestamp,
    pub(crate) reason: Reason,
}

/// Returns the limits of the creates of a ReplicaSet; none if it lacks no pods, may create all of them, or is quarantined.
pub(super) fn limits(index: &Index, config: &Config, id: SetId) -> Vec<Limit> {
    let Some(set) = index
        .set(id)
        .filter(|set| !set.object.deleting && set.selector().is_some())
    else {
        return Vec::new();
    };
    let lacking = usize::try_from(-set.surplus()).unwrap_or(0);
    if lacking == 0 {
        return Vec::new();
    }
    let now = index.now;
    let limits = [
        unanswered(set, now),
        lost(index, set, lacking),
        braked(config, set, now, lacking),
        after_termination(set, now, lacking),
    ];
    limits.into_iter().flatten().collect()
}

/// Returns the limits by which a ReplicaSet that lacks pods may create none now.
pub(crate) fn blocking(index: &Index, config: &Config, id: SetId) -> Vec<Limit> {
    let mut limits = limits(index, config, id);
    limits.retain(|limit| limit.admitted == 0);
    limits
}

/// A create of unknown effect is repeated after a backoff, whatever events come meanwhile.
fn unanswered(set: &Set, now: Timestamp) -> Option<Limit> {
    set.waits_for_answer(now).then(|| Limit {
        admitted: 0,
        until: set.pace.unanswered_until,
        reason: Reason::new(Rule::Backoff, "a create had no answer"),
    })
}

/// A ReplicaSet whose pods do not last has an allowance and grants. Also says so while people know of it.
fn lost(index: &Index, set: &Set, lacking: usize) -> Option<Limit> {
    let (now, key) = (index.now, &set.object.key);
    let account = index.ledger.as_ref()?.account(now, key)?;
    let desired = set.wanted().unsigned_abs();
    let admitted = account.admit(desired, lacking);
    (admitted < lacking || now <= set.pace.told_until).then(|| Limit {
        admitted,
        until: account.next_grant(),
        reason: Reason::new(Rule::PodsDoNotLast, account.explain(key, desired)),
    })
}

/// While many pods of a ReplicaSet have no node, its creates are slow: the desired number may be a mistake.
fn braked(config: &Config, set: &Set, now: Timestamp, lacking: usize) -> Option<Limit> {
    let Brake { pods, per_second } = config.brake?;
    let unassigned = set.counts.unassigned.unsigned_abs();
    let free = pods.saturating_sub(unassigned) as usize;
    let until = set.pace.unassigned_until;
    let admitted = match free {
        0 if now < until => 0,
        0 => per_second as usize,
        free => free,
    };
    let detail = format!(
        "{unassigned} of its pods have no node yet, so {per_second} of {lacking} missing pods are created a second. If the number is a \
         mistake, lower spec.replicas; if not, wait, or raise --unassigned-pods-max of the agent"
    );
    (lacking > free).then(|| Limit {
        admitted,
        until,
        reason: Reason::new(Rule::ManyUnassigned, detail),
    })
}

/// Pods being deleted count as replicas, if the ReplicaSet prefers so. The end of each of them is an event; the time is for one that is
/// lost.
fn after_termination(set: &Set, now: Timestamp, lacking: usize) -> Option<Limit> {
    let preferences = set.object.preferences.as_deref()?;
    let terminating = set.counts.terminating.unsigned_abs();
    let pods = wording::count(terminating, "pod");
    (preferences.create_after_termination && terminating > 0).then(|| Limit {
        admitted: lacking.saturating_sub(terminating as usize),
        until: now.plus(LOOK_AGAIN),
        reason: Reason::new(
            Rule::AfterTermination,
            format!("{pods} being deleted. The ReplicaSet prefers creates after termination"),
        ),
    })
}
