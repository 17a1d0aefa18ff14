//! The creation and deletion of pods (spec 6).

use std::{collections::HashMap, sync::Arc};

use super::{
    batch_result::BatchResult,
    rank::{self, Candidate, Choice, Chosen, RankedPod},
};
use crate::{
    batch::{Action, Victim},
    config::Config,
    index::{Entry, Index, NodeId, PodId, Set, SetId},
    names,
    object::{Span, Timestamp},
    queue::Retry,
    reason::{Reason, Rule, Thousandths},
    wording,
};

/// The result of the manage step, for the condition ReplicaFailure (W7) and the end of the sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ManageResult {
    /// Nothing had to be done, or it was done.
    Good,
    /// It failed with this message.
    Failed {
        message: String,
        retry: Retry,
        retry_after: Option<Span>,
    },
    /// No attempt was possible, or it neither failed nor succeeded: the condition keeps its value.
    Pending {
        retry: Option<Retry>,
        retry_after: Option<Span>,
    },
}

/// The decision of the manage step.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) action: Action,
    pub(super) reasons: Vec<Reason>,
    pub(super) age_ratios: Vec<Thousandths>,
    pub(super) near_cut: Vec<RankedPod>,
}

// === impl ManageResult ===

impl ManageResult {
    /// Returns the result for the outcomes of a manage batch. A namespace that is being deleted counts as no error (W15).
    pub(super) fn of(surplus: i64, result: BatchResult) -> Self {
        let retry = result.retry();
        let BatchResult {
            error,
            afresh: _,
            namespace_terminating,
            skipped,
            not_executed,
            refused: _,
            guarded: _,
            throttled: _,
            counts,
            failure: _,
            retry_after,
        } = result;
        if let Some((_, message)) = error {
            let message = if surplus > 0 {
                format!("unable to delete pods: {message}")
            } else {
                message
            };
            return Self::Failed {
                message,
                retry: retry.unwrap_or(Retry::Refused),
                retry_after,
            };
        }
        let afresh = skipped && !namespace_terminating && !not_executed;
        let retry = retry.or_else(|| afresh.then_some(Retry::Conflict));
        if retry.is_some() || ((namespace_terminating || not_executed) && counts.done == 0) {
            return Self::Pending { retry, retry_after };
        }
        Self::Good
    }
}

/// Decides the creates or deletes; `None` if there are none.
pub(super) fn decide(
    index: &mut Index,
    config: &Config,
    now: Timestamp,
    id: SetId,
) -> Option<Plan> {
    let set = index.set(id)?;
    let surplus = set.surplus();
    if surplus == 0 || set.object.deleting {
        return None;
    }
    let mut count = burst(config, surplus);
    let mut reasons = reasons(set, count);
    if surplus < 0
        && let Some(back_off) = &mut index.set_mut(id)?.create_back_off
    {
        let admitted = back_off.admit(now, count);
        if admitted == 0 {
            return None;
        }
        if back_off.closed_until(now).is_some() {
            reasons.push(back_off.reason());
        }
        count = admitted;
    }
    Some(if surplus < 0 {
        Plan {
            action: create(index, config, id, count),
            reasons,
            age_ratios: Vec::new(),
            near_cut: Vec::new(),
        }
    } else {
        let victims = victims(index, id, count, now);
        delete(index, config, victims, reasons)
    })
}

pub(super) fn weight(config: &Config, set: &Set) -> usize {
    if set.object.deleting {
        0
    } else {
        burst(config, set.surplus())
    }
}

/// Returns the part of a surplus or lack that one sync acts on.
fn burst(config: &Config, surplus: i64) -> usize {
    let all = usize::try_from(surplus.unsigned_abs()).unwrap_or(usize::MAX);
    all.min(config.burst_replicas.max(1) as usize)
}

fn create(index: &mut Index, config: &Config, id: SetId, count: usize) -> Action {
    let (generate_name, names) = choose_names(index, id, count);
    Action::Create {
        names,
        generate_name,
        slow_start_initial: config.slow_start_initial.max(1),
    }
}

fn delete(index: &Index, config: &Config, choice: Choice<PodId>, reasons: Vec<Reason>) -> Plan {
    let Choice { chosen, near_cut } = choice;
    let age_ratios = chosen
        .iter()
        .filter_map(|chosen| chosen.age_ratio)
        .collect();
    let victims = chosen.into_iter().filter_map(|Chosen { id, reason, .. }| {
        let pod = index.pod(id)?;
        Some(Victim {
            pod: pod.pod_ref(),
            version: pod.version.filter(|_| config.delete_by_version),
            reason,
        })
    });
    Plan {
        action: Action::Delete(victims.collect()),
        reasons,
        age_ratios,
        near_cut,
    }
}

/// Chooses the victims, and compares the pods on both sides of the cut.
pub(super) fn victims(index: &Index, id: SetId, count: usize, now: Timestamp) -> Choice<PodId> {
    let related = index.related_by_node(id);
    let mut pods: Vec<_> = index.active_pods(id).collect();
    if count >= pods.len() {
        pods.sort_unstable_by_key(|(_, pod)| &pod.name);
    }
    let candidates = pods.into_iter().map(|pod| candidate(index, pod, &related));
    let name = |id| {
        index
            .pod(id)
            .map_or_else(Arc::default, |pod| Arc::clone(&pod.name))
    };
    rank::choose_and_compare(candidates, count, now, name)
}

/// Returns the `generateName` and the names of the next `count` pods, which are in flight from now on. Returns fewer names only if they run
/// out.
fn choose_names(index: &mut Index, id: SetId, count: usize) -> (Arc<str>, Vec<Arc<str>>) {
    let Some(set) = index.set_mut(id) else {
        return ("".into(), Vec::new());
    };
    let generate_name = Arc::clone(&set.generate_name);
    let namespace = Arc::clone(&set.object.key.namespace);
    let mut cursor = set.cursor.clone();
    let usage = |name: &str| index.namespaces.name_use(&namespace, name);
    let names = cursor.next_names(names::base(&generate_name), count, usage);
    if let Some(set) = index.set_mut(id) {
        set.cursor = cursor;
    }
    names
        .iter()
        .for_each(|name| index.namespaces.begin_making(&namespace, Arc::clone(name)));
    (generate_name, names)
}

fn candidate<'a>(
    index: &'a Index,
    (id, pod): (PodId, &'a Entry),
    related: &HashMap<Option<NodeId>, u32>,
) -> Candidate<'a, PodId> {
    Candidate {
        id,
        node: index.node_of(pod).map(|node| &**node),
        state: &pod.state,
        rank: related.get(&pod.node).copied().unwrap_or(0),
        uid: &pod.uid,
    }
}

fn reasons(set: &Set, count: usize) -> Vec<Reason> {
    let surplus = set.surplus();
    let rule = if surplus < 0 {
        Rule::TooFewReplicas
    } else {
        Rule::TooManyReplicas
    };
    let detail = format!(
        "{}, {} wanted",
        wording::count(set.counts.active, "active pod"),
        set.wanted()
    );
    let detail = detail.into();
    let mut reasons = vec![Reason { rule, detail }];
    if count as u64 != surplus.unsigned_abs() {
        let detail = format!("{count} of {} at once", surplus.unsigned_abs());
        reasons.push(Reason {
            rule: Rule::BurstLimited,
            detail: detail.into(),
        });
    }
    reasons
}
