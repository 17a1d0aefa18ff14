//! ReplicaSets as rows.

use std::collections::BTreeSet;

use decree::v1;
use jiff::Timestamp;

use crate::cause;

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    has_clusters: bool,
    is_wide: bool,
}

const HEADERS: [&str; 7] = [
    "NAMESPACE",
    "NAME",
    "DESIRED",
    "CURRENT",
    "READY",
    "AVAILABLE",
    "STATE",
];

// === impl Layout ===

impl Layout {
    /// The columns that these ReplicaSets need. The cause is the last column, because nothing cuts it off there.
    pub(super) fn of(sets: &[v1::ReplicaSetSummary], is_wide: bool) -> Self {
        let clusters: BTreeSet<_> = sets.iter().map(|set| &set.cluster).collect();
        Self {
            has_clusters: is_wide || clusters.len() > 1,
            is_wide,
        }
    }

    pub(super) fn headers(self) -> Vec<&'static str> {
        let mut headers = Vec::new();
        headers.extend(self.has_clusters.then_some("CLUSTER"));
        headers.extend(HEADERS);
        if self.is_wide {
            headers.extend(["TERMINATING", "LABELS"]);
        }
        headers.push("CAUSE");
        headers.extend(self.is_wide.then_some("SAID"));
        headers
    }

    pub(super) fn cells(self, set: &v1::ReplicaSetSummary) -> Vec<String> {
        let mut cells = Vec::new();
        cells.extend(self.has_clusters.then(|| set.cluster.clone()));
        cells.extend(basic_cells(set));
        if self.is_wide {
            cells.extend([set.terminating.to_string(), labels(set)]);
        }
        cells.push(cause::cell(set, Timestamp::now()));
        cells.extend(self.is_wide.then(|| cause::words(set).to_owned()));
        cells
    }
}

fn basic_cells(set: &v1::ReplicaSetSummary) -> [String; 7] {
    let v1::ObjectRef {
        namespace, name, ..
    } = set.replica_set.clone().unwrap_or_default();
    [
        namespace,
        name,
        set.replicas.to_string(),
        set.active.to_string(),
        set.ready.to_string(),
        set.available.to_string(),
        cause::state(set).to_owned(),
    ]
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
