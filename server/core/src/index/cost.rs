//! The memory of objects, in bytes: an estimate from their content and from the maps that hold them. It is checked against a limit, so it
//! is rather too high than too low.

use crate::{
    node::Node,
    object::{OwnerReference, ReplicaSet, Uid},
    preferences::{Preferences, ScaleIn},
    selector::{Selector, Test},
};

/// A pod, without its texts and its shared data.
const POD: usize = 340;
const REPLICA_SET: usize = 1_500;
/// What some pods share, without their labels and their controller.
const GROUP: usize = 400;
/// A label, with its places in the index.
const LABEL: usize = 340;
const TEXT: usize = 32;
/// A name that is kept for the next creates of a ReplicaSet.
pub(super) const KEPT_NAME: usize = 40;
pub(super) const DELETION: usize = 64;
/// A deleted object that is remembered, without its UID.
const TOMBSTONE: usize = 300;
/// A requirement of a selector, or a condition, without its texts.
const ENTRY: usize = 128;
pub(super) const NAMESPACE: usize = 800;
pub(super) const NODE_OF_GROUP: usize = 64;

pub(super) fn node(name: &str) -> usize {
    4 * TEXT + name.len()
}

pub(super) fn shown(node: &Node) -> usize {
    ENTRY + labels(node.labels.texts())
}

pub(super) fn group(controller: Option<&OwnerReference>) -> usize {
    GROUP + controller.map_or(0, owner)
}

fn owner(owner: &OwnerReference) -> usize {
    let OwnerReference {
        api_version,
        kind,
        name,
        uid,
        block_owner_deletion: _,
    } = owner;
    let texts = [api_version, kind, name, &uid.0].into_iter();
    GROUP + texts.map(|text| TEXT + text.len()).sum::<usize>()
}

pub(super) fn pod(name: &str, uid: &Uid) -> usize {
    POD + name.len() + uid.0.len()
}

pub(super) fn tombstone(uid: &Uid) -> usize {
    TOMBSTONE + uid.0.len()
}

pub(super) fn replica_set(set: &ReplicaSet) -> usize {
    // The base of the pods' names contains the name, too.
    let names = 3 * set.key.name.len() + 2 * set.key.uid.0.len();
    let owner = set.controller.as_ref().map_or(0, owner);
    let preferences = set.preferences.as_deref().map_or(0, preferences);
    let words = set.resume.len() + set.replicas_manager.len();
    REPLICA_SET + names + owner + words + preferences + content(set)
}

fn preferences(preferences: &Preferences) -> usize {
    let Preferences {
        create_after_termination: _,
        keep_ended: _,
        scale_in,
        surge: _,
        surge_percent: _,
        scale_in_cost,
        ignored,
    } = preferences;
    let rules = scale_in.iter().map(|rule| match rule {
        ScaleIn::First(key, value) => key.len() + value.len(),
        ScaleIn::Spread(key) => key.len(),
        ScaleIn::EmptiestNode | ScaleIn::Youngest | ScaleIn::LeavingNode => 0,
    });
    let source = scale_in_cost.iter().map(|it| it.source.len());
    let texts = rules.chain(source);
    let texts = texts.chain(ignored.iter().map(|text| text.len()));
    // The pods that are expected to be evicted have bounded words.
    texts.map(|text| ENTRY + text).sum::<usize>() + 4 * ENTRY
}

/// The part of a ReplicaSet that has no bound of its own: its selector, the labels of its template, and its conditions.
pub(super) fn content(set: &ReplicaSet) -> usize {
    let selector = match &set.selector {
        Ok(selector) => self::selector(selector),
        Err(quarantine) => ENTRY + quarantine.field.len() + quarantine.detail.len(),
    };
    let conditions = set.status.conditions.iter().map(|condition| {
        let texts = [&condition.kind, &condition.status, &condition.reason];
        let texts: usize = texts.into_iter().map(String::len).sum();
        ENTRY + texts + condition.message.len()
    });
    let conditions: usize = conditions.sum();
    selector + labels(set.template_labels.texts()) + conditions
}

pub(super) fn labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    labels
        .map(|(key, value)| LABEL + key.len() + value.len())
        .sum()
}

fn selector(selector: &Selector) -> usize {
    let Selector::All(requirements) = selector else {
        return 0;
    };
    let requirements = requirements.iter().map(|one| {
        let values = match &one.test {
            Test::In(values) | Test::NotIn(values) => &values[..],
            Test::Exists | Test::DoesNotExist => &[],
        };
        let values = values.iter().map(|value| 2 * TEXT + value.len());
        ENTRY + one.key.len() + values.sum::<usize>()
    });
    requirements.sum()
}
