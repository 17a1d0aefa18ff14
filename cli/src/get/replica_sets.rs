//! ReplicaSets as rows.

use std::collections::BTreeSet;

use decree::v1::{self, ReplicaSetState, Rule};

use crate::{decision::word, record};

/// How many characters of what the cluster said are shown unless all that is known is wanted.
const WORDS_MAX: usize = 80;

/// Which columns there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    has_clusters: bool,
    is_wide: bool,
}

const HEADERS: [&str; 8] = [
    "NAMESPACE",
    "NAME",
    "DESIRED",
    "CURRENT",
    "READY",
    "AVAILABLE",
    "STATE",
    "REASON",
];

// === impl Layout ===

impl Layout {
    /// Returns the columns that these ReplicaSets need.
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
        headers
    }

    pub(super) fn cells(self, set: &v1::ReplicaSetSummary) -> Vec<String> {
        let mut cells = Vec::new();
        cells.extend(self.has_clusters.then(|| set.cluster.clone()));
        cells.extend(self.basic_cells(set));
        if self.is_wide {
            cells.extend([set.terminating.to_string(), labels(set)]);
        }
        cells
    }

    fn basic_cells(self, set: &v1::ReplicaSetSummary) -> [String; 8] {
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
            state(set.state()).to_owned(),
            reason(set, self.is_wide),
        ]
    }
}

/// Returns the name of a ReplicaSet.
pub(super) fn name(set: &v1::ReplicaSetSummary) -> &str {
    set.replica_set.as_ref().map_or("", |object| &object.name)
}

/// Returns why a ReplicaSet stands as it does: what waits for its backoff was refused by the cluster or held by the agent, and their words say
/// more than the wait.
fn reason(set: &v1::ReplicaSetSummary, is_wide: bool) -> String {
    let Some(first) = set.reasons.first() else {
        return String::new();
    };
    let is_obstacle = |it: &&v1::Reason| {
        [Rule::RefusedByAgent, Rule::Throttled].contains(&it.rule()) && !it.detail.is_empty()
    };
    let obstacle = set.reasons.iter().find(is_obstacle);
    let (first, said) = match obstacle {
        _ if first.rule() != Rule::Backoff => return record::reason(first),
        _ if !set.failure.is_empty() => (first, set.failure.as_str()),
        Some(obstacle) => (obstacle, obstacle.detail.as_str()),
        None => return record::reason(first),
    };
    let cut = said.char_indices().nth(WORDS_MAX).filter(|_| !is_wide);
    let said = match cut {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    };
    format!("{}: {said}", word(first.rule()))
}

fn labels(set: &v1::ReplicaSetSummary) -> String {
    let mut labels: Vec<_> = set
        .template_labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort();
    match labels.is_empty() {
        true => "<none>".to_owned(),
        false => labels.join(","),
    }
}

/// Returns the word for how a ReplicaSet stands.
pub(crate) const fn state(state: ReplicaSetState) -> &'static str {
    match state {
        ReplicaSetState::Unspecified => "Unknown",
        ReplicaSetState::InSync => "InSync",
        ReplicaSetState::Queued => "Queued",
        ReplicaSetState::Acting => "Acting",
        ReplicaSetState::Waiting => "Waiting",
        ReplicaSetState::Quarantined => "Quarantined",
    }
}
