//! The agent's own limits, for any server: the agent checks each operation against the ReplicaSets and pods that it has seen, immediately
//! before the operation starts.
//!
//! 1. A pod is created only while fewer pods are active or being created than desired, and only under a name of that ReplicaSet. If the
//!    ReplicaSet prefers creates after termination, pods being deleted count, too. If it prefers replacements before evictions, its surge
//!    is allowed on top: at most one pod for each active pod that is leaving or on a cordoned node.
//! 2. A pod is deleted only while more pods are active and not being deleted than desired, and, unless the pod is leaving, than desired and
//!    allowed by the surge. It must be an active pod that the ReplicaSet controls and selects. An ended pod is deleted only while there are
//!    more than the ReplicaSet prefers to keep.
//! 3. A pod is adopted only if it is an active orphan that the ReplicaSet selects, and released only if it is active and not selected.
//! 4. A status reports no more pods than there have been since the last status, and no later generation. It changes only the condition
//!    `ReplicaFailure`, to a short text.
//! 5. An agent of mode ADVISE does nothing but advise. It writes the deletion cost of a pod only if nobody else has set one, and only if
//!    the ReplicaSet prefers an order of deletion; otherwise it only takes its own costs away. Its [pace](super::advice) is limited.
//!
//! The [`guard`](super::guard) checks that the batch names exactly the ReplicaSet that the agent knows, and that nobody has deleted that
//! ReplicaSet. A server whose view is as new as the agent's breaks none of these rules; a server with an older view decides again.

use decree_api::v1;

use crate::{
    api::display,
    nodes::Hint,
    refusal::{Refusal, Rule},
    view::{
        View,
        pods::{self, Cost, Labels, Pod, State},
        template::replicas,
    },
};

/// The length of the suffix of pod names, in the API server's alphabet.
const SUFFIX_LENGTH: usize = 5;
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest part of the ReplicaSet's name before the suffix.
const BASE_LENGTH_MAX: usize = 58;
/// The condition that a decision may change, and the longest text in it.
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";
const CONDITION_BYTES_MAX: usize = 4 * 1024;

type Checked = Result<(), Refusal>;

pub(crate) fn check_create(
    view: &View,
    set: &v1::ReplicaSet,
    create: &v1::Create,
    name: &str,
) -> Checked {
    if !is_pod_name(&set.name, &create.generate_name, name) {
        let text = format!("{name:?} is not a pod name of {}", set.name);
        return Err(Refusal::new(Rule::Name, text));
    }
    let key = pods::key(&set.namespace, &set.uid);
    let (counts, desired) = (view.pods.counts(&key), desired(set));
    let (active, ending) = (counts.active as usize, counts.terminating as usize);
    let surge = surge(view, set);
    let creating = view.pods.creates_besides(&key, name);
    let waits = set
        .preferences
        .as_ref()
        .is_some_and(|it| it.create_after_termination);
    if active + creating + if waits { ending } else { 0 } >= desired + surge {
        let text = format!("{active} pods are active, {creating} being created, {desired} desired");
        let text = text + &in_advance(surge);
        let ending = format!(", and {ending} being deleted count, too");
        return Err(Refusal::new(
            Rule::Surplus,
            text + if waits { &ending } else { "" },
        ));
    }
    Ok(())
}

/// Checks the deletion of a pod that the ReplicaSet controls.
pub(crate) fn check_delete(view: &View, set: &v1::ReplicaSet, pod: &v1::ObjectRef) -> Checked {
    let key = pods::key(&set.namespace, &set.uid);
    if let Some(ended) = view.pods.kept_with(&key, &pod.uid) {
        return check_ended(set, pod, ended).and_then(|()| check_selected(view, set, pod, true));
    }
    check_claimed(view, set, pod, true)?;
    let (active, desired) = (view.pods.counts(&key).active as usize, desired(set));
    let leaving = view.pods.leaving_besides(&key, &pod.uid) as usize;
    let is_leaving = |known: &Pod| known.hint == Hint::Leaving;
    let surge = match view.pods.get(&pod.uid) {
        Some(known) if is_leaving(known) => 0,
        Some(_) | None => surge(view, set),
    };
    if active <= desired + surge + leaving {
        let text = format!("{active} pods are active, {leaving} being deleted, {desired} desired");
        return Err(Refusal::new(Rule::Shortage, text + &in_advance(surge)));
    }
    Ok(())
}

/// Checks the deletion of one of `ended` pods that have ended.
fn check_ended(set: &v1::ReplicaSet, pod: &v1::ObjectRef, ended: u32) -> Checked {
    let keep = set.preferences.as_ref().and_then(|it| it.keep_ended);
    if keep.is_some_and(|keep| i64::from(ended) > i64::from(keep)) {
        return Ok(());
    }
    let kept = keep.map_or_else(|| "all are".to_owned(), |keep| format!("{keep} are"));
    let text = format!(
        "pod {} has ended: of {ended} ended pods, {kept} kept",
        display(pod)
    );
    Err(Refusal::new(Rule::Inactive, text))
}

/// Checks that a pod to adopt or delete is active and selected, or that a pod to release is active and not selected.
pub(crate) fn check_claimed(
    view: &View,
    set: &v1::ReplicaSet,
    pod: &v1::ObjectRef,
    selected: bool,
) -> Checked {
    let Some(known) = view.pods.get(&pod.uid) else {
        return Ok(());
    };
    if !known.state.is_active() {
        let text = format!("pod {} has ended or is being deleted", display(pod));
        return Err(Refusal::new(Rule::Inactive, text));
    }
    check_selected(view, set, pod, selected)
}

fn check_selected(
    view: &View,
    set: &v1::ReplicaSet,
    pod: &v1::ObjectRef,
    selected: bool,
) -> Checked {
    let labels = view.pods.get(&pod.uid).map(|known| &known.labels);
    if labels.is_some_and(|labels| selects(set.selector.as_ref(), labels) != Some(selected)) {
        let verb = if selected {
            "does not match"
        } else {
            "matches"
        };
        let text = format!("pod {} {verb} the selector of {}", display(pod), set.name);
        return Err(Refusal::new(Rule::Selector, text));
    }
    Ok(())
}

/// Checks the advice on a pod.
pub(crate) fn check_advice(
    view: &View,
    set: &v1::ReplicaSet,
    pod: &v1::ObjectRef,
    cost: i32,
) -> Checked {
    let known = view.pods.get(&pod.uid);
    if known.is_none_or(|it| it.state == State::Terminating || it.version.is_none()) {
        let text = format!("pod {} is being deleted, or has no version", display(pod));
        return Err(Refusal::new(Rule::Inactive, text));
    }
    let is_order = |it: &v1::Preferences| !it.scale_in.is_empty() || it.scale_in_cost.is_some();
    let prefers = set.preferences.as_ref().is_some_and(is_order);
    let refuse = |text: String| Err(Refusal::new(Rule::Advice, text));
    if known.is_some_and(|it| it.cost == Cost::Others) {
        let pod = display(pod);
        return refuse(format!(
            "somebody else has set the deletion cost of pod {pod}"
        ));
    }
    if cost != 0 && !prefers {
        return refuse(format!("{} prefers no order of deletion", set.name));
    }
    Ok(())
}

/// Checks that a pod to delete or release has the name and the UID of one pod, which the ReplicaSet controls, or, to be adopted, no other.
/// False if the pod is gone, as far as the agent has seen.
pub(crate) fn check_ownership(
    view: &View,
    owner: &v1::ObjectRef,
    pod: &v1::ObjectRef,
    adopts: bool,
) -> Result<bool, Refusal> {
    let refuse = |text: String| Err(Refusal::new(Rule::Ownership, text));
    if pod.namespace != owner.namespace {
        return refuse(format!("pod {} is in another namespace", display(pod)));
    }
    let key = pods::key(&owner.namespace, &owner.uid);
    match view.pods.get(&pod.uid) {
        None => Ok(false),
        Some(_) if !view.pods.is_named(pod) => refuse(format!(
            "pod {} has another uid than {}",
            display(pod),
            pod.uid
        )),
        Some(Pod { controller, .. }) if **controller == *key => Ok(true),
        Some(Pod { controller, .. }) if adopts && controller.is_empty() => Ok(true),
        Some(_) if adopts => refuse(format!("pod {} has another controller", display(pod))),
        Some(_) => refuse(format!(
            "pod {} is not controlled by replica set {}",
            display(pod),
            display(owner)
        )),
    }
}

pub(crate) fn check_status(
    view: &View,
    set: &v1::ReplicaSet,
    status: &v1::ReplicaSetStatus,
) -> Checked {
    let refuse = |text: String| Err(Refusal::new(Rule::Status, text));
    let peak = view.pods.peak(&pods::key(&set.namespace, &set.uid));
    let terminating = status.terminating_replicas.unwrap_or(0);
    let bounds = [
        ("replicas", status.replicas, peak.active),
        ("readyReplicas", status.ready_replicas, peak.ready),
        ("availableReplicas", status.available_replicas, peak.ready),
        (
            "fullyLabeledReplicas",
            status.fully_labeled_replicas,
            peak.active,
        ),
        ("terminatingReplicas", terminating, peak.terminating),
    ];
    for (field, said, seen) in bounds {
        if u32::try_from(said).map_or(true, |said| said > seen) {
            return refuse(format!(
                "{field} is {said}, and at most {seen} have been seen"
            ));
        }
    }
    if status.observed_generation > set.generation {
        let (said, seen) = (status.observed_generation, set.generation);
        return refuse(format!(
            "observedGeneration is {said}, and {seen} the newest"
        ));
    }
    check_conditions(set, &status.conditions).or_else(refuse)
}

fn check_conditions(
    set: &v1::ReplicaSet,
    conditions: &[v1::ReplicaSetCondition],
) -> Result<(), String> {
    let known = set.status.as_ref().map_or(&[][..], |it| &it.conditions);
    let of_others = |conditions: &'_ [v1::ReplicaSetCondition]| -> Vec<_> {
        let others = conditions.iter().filter(|it| it.r#type != REPLICA_FAILURE);
        others.cloned().collect()
    };
    if of_others(known) != of_others(conditions) {
        return Err(format!("conditions other than {REPLICA_FAILURE} differ"));
    }
    let changed: Vec<_> = conditions.iter().filter(|it| !known.contains(it)).collect();
    let texts = |it: &v1::ReplicaSetCondition| format!("{}{}{}", it.status, it.reason, it.message);
    match changed[..] {
        [] => Ok(()),
        [one] => check_text(&texts(one)).map_err(|text| format!("{REPLICA_FAILURE} has {text}")),
        [..] => Err(format!("there is more than one {REPLICA_FAILURE}")),
    }
}

/// The text must be short, without control characters and without characters that change the direction of writing.
fn check_text(text: &str) -> Result<(), String> {
    let steers = |it: char| {
        let turns = matches!(
            it,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        );
        it.is_control() || turns || ('\u{2066}'..='\u{2069}').contains(&it)
    };
    if text.len() > CONDITION_BYTES_MAX {
        return Err(format!("more than {CONDITION_BYTES_MAX} bytes"));
    }
    let character = text.chars().find(|it| steers(*it));
    character.map_or(Ok(()), |it| Err(format!("the character {it:?}")))
}

/// True if the API server could form this name and `generateName` for a pod of the ReplicaSet.
fn is_pod_name(replica_set: &str, generate_name: &str, name: &str) -> bool {
    let prefix = generate_name.strip_prefix(replica_set);
    let base = &generate_name[..generate_name.floor_char_boundary(BASE_LENGTH_MAX)];
    let suffix = name.strip_prefix(base).unwrap_or_default().as_bytes();
    matches!(prefix, Some("" | "-"))
        && suffix.len() == SUFFIX_LENGTH
        && suffix.iter().all(|byte| ALPHABET.contains(byte))
}

/// Whether labels match a selector; `None` if the selector cannot be understood. An absent selector matches nothing.
fn selects(selector: Option<&v1::LabelSelector>, labels: &Labels) -> Option<bool> {
    let Some(selector) = selector else {
        return Some(false);
    };
    let mut selected = true;
    for (key, value) in &selector.match_labels {
        selected &= labels.get(key) == Some(value);
    }
    for expression in &selector.match_expressions {
        let value = labels.get(&expression.key);
        let listed = value.is_some_and(|value| expression.values.contains(value));
        selected &= match expression.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => return None,
        };
    }
    Some(selected)
}

fn desired(set: &v1::ReplicaSet) -> usize {
    usize::try_from(replicas(set)).unwrap_or(usize::MAX)
}

/// How many pods beyond the desired number the ReplicaSet may have, as replacements of pods that may be evicted.
fn surge(view: &View, set: &v1::ReplicaSet) -> usize {
    let Some(v1::Preferences {
        surge,
        surge_percent,
        ..
    }) = set.preferences
    else {
        return 0;
    };
    let at_least = |it: Option<i32>| usize::try_from(it.unwrap_or(0)).unwrap_or(0);
    let desired = desired(set);
    let percent = at_least(surge_percent)
        .saturating_mul(desired)
        .div_ceil(100);
    let hinted = view
        .pods
        .counts(&pods::key(&set.namespace, &set.uid))
        .hinted;
    let most = at_least(surge).max(percent).min(desired);
    most.min(hinted as usize)
}

fn in_advance(surge: usize) -> String {
    match surge {
        0 => String::new(),
        surge => format!(", and {surge} in advance of evictions"),
    }
}

#[cfg(test)]
mod tests;
