//! The desired pods go up and down. The managers are those of the object: for a ReplicaSet of a Deployment, that of the Deployment
//! controller, and the managers of the Deployment itself tell who fights.

use std::{collections::BTreeSet, sync::Arc};

use decree_api::v1;
use decree_core::{Span, Timestamp};

use super::{
    finding::{Names, blocked},
    words::short,
};
use crate::wire::is_cluster_word;

/// How long a change counts.
const MINUTE: Span = Span::seconds(60);
/// A ReplicaSet flaps if it changes this often in a minute, and reverses its direction this often. A rollout does not reverse it.
const CHANGES_MIN: usize = 6;
const REVERSALS_MIN: usize = 3;

/// The maximum number of managers that are named.
const MANAGERS_MAX: usize = 3;
/// The manager of the Deployment controller.
const BUILT_IN: &str = "kube-controller-manager";

/// At least six changes of the desired pods within a minute, of which three or more reverse the direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flapping {
    /// The number of known changes.
    pub(crate) changes: usize,
    pub(crate) least: i32,
    pub(crate) most: i32,
    /// The managers that wrote them, as far as they are known, sorted.
    pub(crate) managers: Vec<Arc<str>>,
}

impl Flapping {
    /// Finds it in the changes of a ReplicaSet, the oldest first. `None` if it does not flap.
    pub(crate) fn of<'a>(
        now: Timestamp,
        changes: impl Iterator<Item = (Timestamp, v1::Scaled, &'a Arc<str>)>,
    ) -> Option<Self> {
        let latest = changes.filter(|(at, ..)| now.since(*at) < MINUTE);
        let changes: Vec<_> = latest
            .filter_map(|(_, it, manager)| Some((it.previous?, it.desired, manager)))
            .collect();
        let is_up = |(from, to, _): &(i32, i32, _)| from < to;
        let pairs = changes.windows(2);
        let reversals = pairs.filter(|pair| is_up(&pair[0]) != is_up(&pair[1]));
        if changes.len() < CHANGES_MIN || reversals.count() < REVERSALS_MIN {
            return None;
        }
        let sizes = || changes.iter().flat_map(|(from, to, _)| [*from, *to]);
        let managers: BTreeSet<_> = changes.iter().map(|(_, _, manager)| *manager).collect();
        let managers = managers.into_iter().filter(|it| !it.is_empty());
        Some(Self {
            changes: changes.len(),
            least: sizes().min()?,
            most: sizes().max()?,
            managers: managers.cloned().collect(),
        })
    }
}

pub(super) fn cause(
    flapping: &Flapping,
    owner: Option<&v1::OwnerReference>,
    names: Names<'_>,
) -> v1::Cause {
    let Flapping {
        changes,
        least,
        most,
        managers,
    } = flapping;
    let deployment = owner.filter(|it| it.kind == "Deployment" && is_cluster_word(&it.name));
    let deployment = deployment.map(|it| &*it.name);
    let mut text =
        format!("Desired changed {changes} times in a minute, between {least} and {most}");
    let named = managers
        .iter()
        .take(MANAGERS_MAX)
        .map(|it| match deployment {
            Some(name) if **it == *BUILT_IN => format!("{BUILT_IN} for Deployment {name}"),
            _ => short(it),
        });
    let mut named: Vec<_> = named.filter(|it| !it.is_empty()).collect();
    if managers.len() > MANAGERS_MAX {
        named.push("others".to_owned());
    }
    if let Some(last) = named.pop() {
        let others = named.join(", ");
        let and = if others.is_empty() { "" } else { " and " };
        text.push_str(&format!(", by {others}{and}{last}"));
    }
    let (kind, name) = match deployment {
        Some(name) if managers.iter().all(|it| **it == *BUILT_IN) => ("deployment", name),
        _ => ("replicaset", names.name),
    };
    let namespace = names.namespace;
    let next = format!("kubectl -n {namespace} get {kind} {name} --show-managed-fields -o yaml");
    blocked(text, "", next)
}
