//! The creation and deletion of pods (spec 6).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Plan, asking,
    batch_result::BatchResult,
    limits::limits,
    rank::{self, Candidate, Choice, Chosen, Preferred},
};
use crate::{
    batch::{Action, Victim},
    config::Config,
    index::{Entry, Index, Set, SetId, paid},
    names,
    node::Hint,
    object::{Span, Uid},
    preferences::ScaleIn,
    queue::Retry,
    reason::{Reason, Rule},
    wording,
};

/// The result of the manage step, for the condition ReplicaFailure (W7) and the end of the sync.
///
/// The default: nothing had to be done, or it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManageResult {
    pub(crate) error: Option<String>,
    /// No attempt was possible, or it neither failed nor succeeded: the condition keeps its value.
    pub(crate) is_pending: bool,
    pub(crate) retry: Option<Retry>,
    pub(crate) retry_after: Option<Span>,
}

impl ManageResult {
    /// Returns the result for the outcomes of a manage batch. A namespace that is being deleted counts as no error (W15).
    pub(super) fn of(surplus: i64, result: BatchResult) -> Self {
        let not_possible = result.namespace_terminating || result.not_executed;
        let afresh = result.skipped && !not_possible;
        let retry = result.retry();
        let retry = retry.or_else(|| afresh.then_some(Retry::Conflict));
        let is_undone = not_possible && result.counts.done == 0;
        let retry_after = result.retry_after;
        let error = result.message().and_then(|message| match surplus {
            1.. => Some(format!("unable to delete pods: {message}")),
            // The number of pods is right, so a failure to delete ended ones is not one of the ReplicaSet.
            0 => None,
            ..0 => Some(message),
        });
        if error.is_none() && retry.is_none() && !is_undone {
            return Self::default();
        }
        Self {
            is_pending: error.is_none() && surplus != 0,
            error,
            retry,
            retry_after,
        }
    }
}

/// Decides the creates or deletes; `None` if there are none now.
pub(super) fn decide(index: &mut Index, config: &Config, id: SetId) -> Option<Plan> {
    paid::pay_for_shown(index, id);
    let set = index.set(id)?;
    let surplus = set.surplus();
    if set.object.deleting || surplus <= 0 {
        index.questions.forget(id);
    }
    let set = index.set(id)?;
    if set.object.deleting {
        return None;
    }
    if surplus == 0 {
        return delete_replaced(index, config, id).or_else(|| delete_ended(index, config, id));
    }
    let count = burst(config, surplus);
    let mut reasons = reasons(set, count);
    if surplus > 0 {
        let (costs, asked) = asking::answers(index, config, (id, count))?;
        reasons.extend(asked);
        return Some(delete(index, config, (id, count), &costs, reasons));
    }
    let limits = limits(index, config, id);
    let admitted = limits.iter().map(|limit| limit.admitted);
    let count = admitted.fold(count, usize::min);
    if count == 0 {
        return None;
    }
    let now = index.now;
    if let Some(set) = index.set_mut(id) {
        set.pace.unassigned_until = now.plus(Span::seconds(1));
    }
    reasons.extend(limits.into_iter().map(|limit| limit.reason));
    Some(Plan::new(create(index, config, id, count)?, reasons))
}

/// Returns the maximum number of operations of the next batch.
pub(super) fn operations_max(config: &Config, set: &Set) -> usize {
    let is_left = set.evictions.as_ref().is_some_and(|it| it.leaving > 0);
    match set.surplus() {
        0 if is_left || keep_ended(set).is_some() => burst(config, i64::MAX),
        surplus => burst(config, surplus),
    }
}

fn keep_ended(set: &Set) -> Option<usize> {
    set.object.preferences.as_deref()?.keep_ended
}

/// Deletes pods that leave and have replacements: first those that are not available, while as many pods as desired stay, then those for
/// which as many available pods as desired stay.
fn delete_replaced(index: &Index, config: &Config, id: SetId) -> Option<Plan> {
    let set = index.set(id)?;
    let evictions = set.evictions.as_ref().filter(|it| it.leaving > 0)?;
    let spare = |pods: i32| usize::try_from(pods.saturating_sub(set.wanted())).unwrap_or(0);
    if evictions.leaving == evictions.leaving_available && spare(set.counts.available) == 0 {
        return None;
    }
    let mut leaving = candidates(index, id);
    leaving.retain(|pod| pod.preferred().hint.is_some_and(Hint::is_leaving));
    let (available, others): (Vec<_>, Vec<_>) =
        leaving.into_iter().partition(|it| it.id.counted.available);
    let chosen = [
        (others, spare(set.counts.active)),
        (available, spare(set.counts.available)),
    ];
    let chosen = chosen.into_iter().flat_map(|(pods, max)| {
        let count = pods.len().min(max);
        choose(index, pods, count).chosen
    });
    let chosen: Vec<_> = chosen
        .take(burst(config, spare(set.counts.active) as i64))
        .collect();
    let detail = format!(
        "{} replaced before eviction",
        wording::count(chosen.len(), "pod")
    );
    let victims = chosen.into_iter().map(|Chosen { id: pod, .. }| {
        let node = index.node_of(pod).map(|node| &**node);
        let hint = index.hint_of(pod).map(|hint| hint.words(node));
        let detail = format!("{}, replaced", hint.unwrap_or_default());
        victim(config, pod, Reason::new(Rule::Replaced, detail))
    });
    let victims: Vec<_> = victims.collect();
    let reasons = vec![Reason::new(Rule::Replaced, detail)];
    (!victims.is_empty()).then(|| Plan::new(Action::Delete(victims), reasons))
}

/// Deletes the oldest ended pods beyond those that the ReplicaSet prefers to keep.
fn delete_ended(index: &Index, config: &Config, id: SetId) -> Option<Plan> {
    let set = index.set(id)?;
    let keep = keep_ended(set)?;
    let owned = set.owned.iter().filter_map(|pod| index.pod(*pod));
    let mut ended: Vec<_> = owned
        .filter(|pod| pod.state.phase.has_ended() && !pod.state.deleting)
        .filter(|pod| set.selects(index.groups.at(pod.group)))
        .collect();
    let surplus = ended.len().checked_sub(keep).filter(|it| *it > 0)?;
    let detail = format!("{} ended pods, {keep} are kept", ended.len());
    ended.sort_unstable_by_key(|pod| (pod.state.created, &pod.uid));
    ended.truncate(surplus.min(burst(config, i64::MAX)));
    let victims = ended.into_iter().map(|pod| Victim {
        pod: pod.pod_ref(),
        version: None,
        reason: Reason::new(Rule::EndedPods, "ended, and older than those that are kept"),
    });
    let action = Action::Delete(victims.collect());
    Some(Plan::new(
        action,
        vec![Reason::new(Rule::EndedPods, detail)],
    ))
}

pub(super) fn burst(config: &Config, surplus: i64) -> usize {
    let all = usize::try_from(surplus.unsigned_abs()).unwrap_or(usize::MAX);
    all.min(config.burst_replicas.max(1) as usize)
}

/// Creates pods with the next `count` names, which are in flight from now on. Creates fewer pods only if the names run out.
fn create(index: &mut Index, config: &Config, id: SetId, count: usize) -> Option<Action> {
    let set = index.sets.get_mut(&id)?;
    let generate_name = Arc::clone(&set.generate_name);
    let namespace = &set.object.key.namespace;
    let usage = |name: &str| index.namespaces.name_use(namespace, name);
    let base = names::base(&generate_name);
    let names = set.cursor.next_names(base, count, usage);
    for name in &names {
        index.namespaces.begin_making(namespace, Arc::clone(name));
    }
    Some(Action::Create {
        names,
        generate_name,
        slow_start_initial: config.slow_start_initial.max(1),
    })
}

/// Chooses and deletes `count` pods, and compares the pods on both sides of the cut.
fn delete(
    index: &Index,
    config: &Config,
    (id, count): (SetId, usize),
    costs: &BTreeMap<Uid, i32>,
    reasons: Vec<Reason>,
) -> Plan {
    let mut candidates = candidates(index, id);
    for candidate in &mut candidates {
        let given = config.costs.get(&candidate.id.name);
        if let Some(cost) = given.or_else(|| costs.get(candidate.uid)) {
            candidate.preferred.get_or_insert_default().asked = Some(*cost);
        }
    }
    let Choice { chosen, near_cut } = choose(index, candidates, count);
    let victims = chosen
        .into_iter()
        .map(|Chosen { id: pod, reason }| victim(config, pod, reason));
    Plan {
        near_cut,
        ..Plan::new(Action::Delete(victims.collect()), reasons)
    }
}

fn choose<'a>(
    index: &Index,
    mut candidates: Vec<Candidate<'a, &'a Entry>>,
    count: usize,
) -> Choice<&'a Entry> {
    if count >= candidates.len() {
        candidates.sort_unstable_by_key(|pod| &pod.id.name);
    }
    let name = |pod: &Entry| Arc::clone(&pod.name);
    rank::choose(&candidates, count, index.now, &name)
}

fn victim(config: &Config, pod: &Entry, reason: Reason) -> Victim {
    Victim {
        pod: pod.pod_ref(),
        version: pod.version.filter(|_| config.delete_by_version),
        reason,
    }
}

/// Returns the active pods of a ReplicaSet as the order of deletion reads them, in no order.
pub(crate) fn candidates(index: &Index, id: SetId) -> Vec<Candidate<'_, &Entry>> {
    let related = index.related_by_node(id);
    let set = index.set(id);
    let preferences = set.and_then(|set| set.object.preferences.as_deref());
    let rules = preferences.map_or(&[][..], |it| &it.scale_in);
    let spread = rules.iter().find_map(ScaleIn::spread);
    let domain = |pod: &Entry| index.nodes.shown(pod.node)?.labels.get(spread?);
    let pods = index.active_pods(id).map(|(_, pod)| Candidate {
        id: pod,
        node: index.node_of(pod).map(|node| &**node),
        state: &pod.state,
        rank: related.get(&pod.node).copied().unwrap_or(0),
        uid: &pod.uid,
        preferred: preferences.map(|_| {
            Box::new(Preferred {
                preferences,
                labels: index.groups.at(pod.group).labels.as_ref(),
                on_node: index.nodes.active_on(pod.node),
                hint: index.hint_of(pod),
                domain: domain(pod).map(|it| &**it),
                ..Preferred::default()
            })
        }),
    });
    pods.collect()
}

fn reasons(set: &Set, count: usize) -> Vec<Reason> {
    let mut reasons = vec![difference(set)];
    let all = set.surplus().unsigned_abs();
    if count as u64 != all {
        let detail = format!("{count} of {all} at once");
        reasons.push(Reason::new(Rule::BurstLimited, detail));
    }
    reasons
}

pub(crate) fn difference(set: &Set) -> Reason {
    let (desired, extra) = (set.wanted(), set.extra());
    let rule = match set.surplus() {
        0 if extra == 0 => return Reason::new(Rule::InSync, "as many active pods as desired"),
        ..=0 if extra > 0 && set.counts.active >= desired => Rule::Surge,
        ..=0 => Rule::TooFewReplicas,
        1.. => Rule::TooManyReplicas,
    };
    let active = wording::count(set.counts.active, "active pod");
    let evictions = set.evictions.as_ref().filter(|_| extra > 0);
    let advance = evictions.map(|it| format!(": {extra} in advance for {}", it.pods));
    let advance = advance.unwrap_or_default();
    Reason::new(rule, format!("{active}, {desired} desired{advance}"))
}
