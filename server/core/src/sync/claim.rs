//! Which pods change owner (spec 5.3): orphans that match are adopted, owned pods that do not match are released.

use std::{collections::BTreeSet, sync::Arc};

use super::is_alive;
use crate::{
    batch::{Action, PodRef},
    index::{Index, PodId, SetId},
    report::{Reason, Rule},
};

/// Decides who changes owner. The sets are sorted by name already.
pub(crate) fn decide(index: &Index, id: SetId) -> Option<(Action, Vec<Reason>)> {
    let set = index.set(id).filter(|set| is_alive(set))?;
    if set.adopts.is_empty() && set.releases.is_empty() {
        return None;
    }
    let refer = |pods: &BTreeSet<(Arc<str>, PodId)>| -> Vec<PodRef> {
        let pods = pods.iter().filter_map(|(_, id)| index.pod(*id));
        pods.map(|pod| PodRef {
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
        })
        .collect()
    };
    let (adopts, releases) = (refer(&set.adopts), refer(&set.releases));
    let reasons = [
        (
            Rule::OrphanMatches,
            adopts.len(),
            "orphans match the selector",
        ),
        (
            Rule::NoLongerMatches,
            releases.len(),
            "owned pods do not match the selector",
        ),
    ];
    let reasons = reasons.into_iter().filter(|(_, count, _)| *count > 0);
    let reasons = reasons
        .map(|(rule, count, what)| Reason {
            rule,
            detail: format!("{count} {what}"),
        })
        .collect();
    Some((Action::Claim { adopts, releases }, reasons))
}
