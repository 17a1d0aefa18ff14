//! The notice about preferences that depend on more than is read of a cluster: no nodes, and only the namespaces of the ReplicaSets.

use std::collections::BTreeMap;

use decree_api::v1::{self, ScaleInRule};

use crate::{args::Named, exit::Failure, near, page::Io, source::Source};

/// The maximum number of ReplicaSets that a notice names.
const NAMED_MAX: usize = 3;

/// Names on stderr what the decisions on a cluster that was read do not know of it: one notice for all that lack the same.
pub(crate) fn notice(
    source: &Source,
    decisions: &[v1::Decision],
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let Source::Snapshot {
        answers,
        cluster: Some(_),
    } = source
    else {
        return Ok(());
    };
    let mut lacking = BTreeMap::<_, Vec<_>>::new();
    for decision in decisions {
        let Some(set) = decision.replica_set.clone().map(Named::from) else {
            continue;
        };
        let summary = answers.state(&set).and_then(|it| it.summary);
        let preferences = summary.and_then(|it| it.preferences).unwrap_or_default();
        let unread = unread(&preferences, decision, answers.is_partial);
        if !unread.is_empty() {
            let sets = lacking.entry(unread.join(" and ")).or_default();
            sets.push(set.path());
        }
    }
    for (unread, sets) in lacking {
        let verb = if sets.len() == 1 { "is" } else { "are" };
        let sets = near::first_of(&sets, NAMED_MAX);
        io.notice(&format!(
            "{sets} {verb} decided without {unread}; a server whose agent has --nodes knows more: --server URL"
        ))?;
    }
    Ok(())
}

/// What a decision lacks, each with the preferences that read it. The order of deletion matters only if a pod is deleted.
fn unread(preferences: &v1::Preferences, decision: &v1::Decision, is_partial: bool) -> Vec<String> {
    let mut by_nodes = Vec::new();
    let mut unread = Vec::new();
    let rules = preferences.scale_in.iter();
    for rule in rules.filter(|_| !decision.deletes.is_empty()) {
        match rule.rule() {
            ScaleInRule::LeavingNode => by_nodes.push("leaving-node".to_owned()),
            ScaleInRule::Spread => by_nodes.push(format!("spread={}", rule.label_key)),
            ScaleInRule::EmptiestNode if is_partial && unread.is_empty() => {
                unread.push("pods of other namespaces (consolidate)".to_owned());
            }
            ScaleInRule::Unspecified
            | ScaleInRule::First
            | ScaleInRule::EmptiestNode
            | ScaleInRule::Youngest => {}
        }
    }
    if preferences.surge.max(preferences.surge_percent) > Some(0) {
        by_nodes.push("surge-on-eviction".to_owned());
    }
    if !by_nodes.is_empty() {
        unread.insert(0, format!("nodes ({})", by_nodes.join(", ")));
    }
    unread
}
