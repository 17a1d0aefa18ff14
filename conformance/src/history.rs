//! The writes that an agent has reported in a session, and how the states that it shows agree with them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use decree_api::v1::{LabelSelector, OwnerReference, Pod, ReplicaSet};

use crate::score::{GONE, LAG, NUMBERS, VERSIONS};

/// A broken rule, and the observation that breaks it.
pub(crate) type Fault = (&'static str, String);

/// The pods of successful creates, and the pods that were shown as deleted or terminating, by uid with the version of the write.
#[derive(Clone, Default)]
pub(crate) struct History {
    made: BTreeMap<String, Option<u64>>,
    ended: BTreeMap<String, Option<u64>>,
}

impl History {
    pub(crate) fn make(&mut self, pod: &Pod) {
        let version = number(&pod.resource_version);
        self.made.entry(pod.uid.clone()).or_insert(version);
    }

    pub(crate) fn end(&mut self, uid: &str, version: &str) {
        let version = number(version);
        self.ended.entry(uid.to_owned()).or_insert(version);
    }

    /// Checks a later state of a pod.
    pub(crate) fn check_state(&self, pod: &Pod) -> Option<Fault> {
        let ended = self.ended.get(&pod.uid)?;
        let comes_back =
            pod.deletion_timestamp.is_none() && is_later(number(&pod.resource_version), *ended);
        comes_back.then(|| (GONE, format!("{} is back after its deletion", pod.name)))
    }

    /// Checks a list of pods that began after all writes of this history. `now` is the history at its end.
    pub(crate) fn check_list(
        &self,
        now: &Self,
        version: &str,
        listed: &BTreeSet<String>,
        pods: &BTreeMap<String, Pod>,
    ) -> Option<Fault> {
        let version = number(version);
        let is_missing = |uid: &str| !listed.contains(uid) && !now.ended.contains_key(uid);
        let is_back = |uid: &str| {
            let pod = pods.get(uid).filter(|_| listed.contains(uid));
            pod.is_some_and(|pod| pod.deletion_timestamp.is_none())
        };
        let mut made = self.made.iter();
        let missing = made.find(|(uid, write)| is_missing(uid) && is_later(version, **write));
        let mut ended = self.ended.iter();
        let back = ended.find(|(uid, write)| is_back(uid) && is_later(version, **write));
        match (missing, back) {
            (Some((uid, _)), _) => Some((LAG, format!("it lacks the created pod {uid}"))),
            (None, Some((uid, _))) => Some((GONE, format!("it has the deleted pod {uid}"))),
            (None, None) => None,
        }
    }
}

/// Whether a state contains a write. Without versions, the state that arrives last is the current one.
fn is_later(state: Option<u64>, write: Option<u64>) -> bool {
    state.zip(write).is_none_or(|(state, write)| state >= write)
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// Checks the number of a frame. A frame without a number does not count.
pub(crate) fn check_number(last: &mut u64, number: u64) -> Option<Fault> {
    if number == 0 {
        return None;
    }
    let due = *last + 1;
    *last = due;
    (number != due).then(|| (NUMBERS, format!("frame {number} where {due} was due")))
}

/// Checks the form of a version, with which a server can order it. Empty means unknown.
pub(crate) fn check_form(version: &str) -> Option<Fault> {
    let is_canonical = |number: u64| number > 0 && number.to_string() == version;
    let is_right = version.is_empty() || number(version).is_some_and(is_canonical);
    (!is_right).then(|| {
        (
            VERSIONS,
            format!("the version {version:?} is no decimal number"),
        )
    })
}

/// Checks the versions of two states of an object.
pub(crate) fn check_versions(name: &str, old: &str, new: &str, are_equal: bool) -> Option<Fault> {
    let is_shared = old == new && !new.is_empty() && !are_equal;
    is_shared.then(|| (VERSIONS, format!("two states of {name} have version {new}")))
}

/// Checks the version of a created pod, which is later than the last list without it.
pub(crate) fn check_created(pod: &Pod, list: Option<u64>) -> Option<Fault> {
    let version = number(&pod.resource_version)?;
    let list = list.filter(|list| version <= *list)?;
    let name = &pod.name;
    let why = format!("{name} was created at version {version}, after a list of {list} without it");
    Some((VERSIONS, why))
}

/// Returns a pod of the ReplicaSet that its selector does not match, which a server would replace endlessly. Or a selector with which a
/// server quarantines the ReplicaSet.
pub(crate) fn unselected<'a>(
    set: &ReplicaSet,
    mut pods: impl Iterator<Item = &'a Pod>,
) -> Option<String> {
    let selector = set.selector.clone().unwrap_or_default();
    if selector == LabelSelector::default() || !selects(&selector, &set.template_labels) {
        let labels = &set.template_labels;
        return Some(format!(
            "the selector {selector:?} has no requirement, or does not match the template {labels:?}"
        ));
    }
    let is_unselected = |pod: &&Pod| {
        let owner = pod.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == set.uid) && !selects(&selector, &pod.labels)
    };
    let pod = pods.find(is_unselected)?;
    Some(format!("{} has the labels {:?}", pod.name, pod.labels))
}

/// Whether a server resolves the controller of a pod to the ReplicaSet: by kind, name and uid.
pub(crate) fn owns(set: &ReplicaSet, owner: &OwnerReference) -> bool {
    let is_kind = ["", "ReplicaSet"].contains(&owner.kind.as_str());
    is_kind && owner.name == set.name && owner.uid == set.uid
}

pub(crate) fn selects(selector: &LabelSelector, labels: &HashMap<String, String>) -> bool {
    let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    selector.match_labels.iter().all(has)
        && selector.match_expressions.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            let is_listed = value.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}
