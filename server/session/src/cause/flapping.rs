//! The desired pods go up and down. The managers are those of the object: for a ReplicaSet of a Deployment, that of the Deployment
//! controller, and the managers of the Deployment itself tell who fights.

use decree_api::v1;
use decree_core::Flapping;

use super::{
    finding::{Names, blocked},
    words::short,
};
use crate::wire::is_cluster_word;

/// The maximum number of managers that are named.
const MANAGERS_MAX: usize = 3;
/// The manager of the Deployment controller.
const BUILT_IN: &str = "kube-controller-manager";

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
    let at_least = if *changes < Flapping::CHANGES_MAX {
        ""
    } else {
        "at least "
    };
    let mut text = format!(
        "Desired changed {at_least}{changes} times in a minute, between {least} and {most}"
    );
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
