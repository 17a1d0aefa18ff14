//! ReplicaSets as rows.

use std::collections::BTreeSet;

use decree::v1;
use jiff::Timestamp;

use crate::{age, cause};

/// The header of a column, and its cell for a ReplicaSet.
pub(super) type Column = (&'static str, fn(&v1::ReplicaSetSummary) -> String);

/// The sentences are in the last columns, because nothing cuts them off there.
const COLUMNS: [Column; 13] = [
    ("CLUSTER", |set| set.cluster.clone()),
    ("NAMESPACE", |set| namespace(set).to_owned()),
    ("NAME", |set| name(set).to_owned()),
    ("DESIRED", |set| set.replicas.to_string()),
    ("CURRENT", |set| set.active.to_string()),
    ("READY", |set| set.ready.to_string()),
    ("AVAILABLE", |set| set.available.to_string()),
    ("STATE", |set| cause::state(set).to_owned()),
    ("TERMINATING", |set| set.terminating.to_string()),
    ("UNCONVERGED", |set| {
        let age = age::since(set.unconverged_since.as_ref(), Timestamp::now());
        age.map_or_else(|| "-".to_owned(), age::human)
    }),
    ("LABELS", labels),
    ("CAUSE", |set| cause::cell(set, Timestamp::now())),
    ("MESSAGE", |set| cause::words(set).to_owned()),
];

/// The columns that these ReplicaSets need.
pub(super) fn columns(sets: &[v1::ReplicaSetSummary], is_wide: bool) -> Vec<Column> {
    let clusters: BTreeSet<_> = sets.iter().map(|set| &set.cluster).collect();
    let columns = COLUMNS.into_iter().filter(|(header, _)| match *header {
        "CLUSTER" => is_wide || clusters.len() > 1,
        "TERMINATING" | "UNCONVERGED" | "LABELS" | "MESSAGE" => is_wide,
        _ => true,
    });
    columns.collect()
}

pub(super) fn cells(columns: &[Column], set: &v1::ReplicaSetSummary) -> Vec<String> {
    columns.iter().map(|(_, cell)| cell(set)).collect()
}

fn namespace(set: &v1::ReplicaSetSummary) -> &str {
    let object = set.replica_set.as_ref();
    object.map_or("", |object| &object.namespace)
}

pub(super) fn name(set: &v1::ReplicaSetSummary) -> &str {
    set.replica_set.as_ref().map_or("", |object| &object.name)
}

fn labels(set: &v1::ReplicaSetSummary) -> String {
    let labels = set.template_labels.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let mut labels: Vec<_> = labels.collect();
    labels.sort();
    if labels.is_empty() {
        "<none>".to_owned()
    } else {
        labels.join(",")
    }
}
