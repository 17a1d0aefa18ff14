//! The pods that change owner (spec 5.3): orphans that match are adopted, owned pods that do not match are released.
//!
//! The index keeps the pods to release up to date, and finds the orphans with a test for each group of orphans of the namespace. A failure
//! ends the sync, unless spec 5.3 ignores it.

use std::collections::BTreeSet;

use super::Plan;
use crate::{
    batch::{Action, PodRef},
    config::Config,
    index::{Entry, Index, PodId, SetId},
    object::Uid,
    reason::{Reason, Rule},
    wording::count,
};

/// The pods that a sync has claimed, each with whether it was an adoption. The sync attempts each once, even if a failure is ignored. It
/// adopts a pod that it has released, if that matches again.
pub(crate) type Claimed = BTreeSet<(Uid, bool)>;

/// Chooses the pods to claim that this sync has not attempted yet, including those that appeared during the sync; `None` if there are none.
/// `adoptable` are the orphans that the ReplicaSet selects.
pub(super) fn decide(
    index: &Index,
    config: &Config,
    id: SetId,
    adoptable: &[PodId],
    claimed: &mut Claimed,
) -> Option<Plan> {
    let set = index.set(id).filter(|set| !set.object.deleting)?;
    let adopts = adoptable.iter().copied();
    let adopts = not_attempted(index, adopts, (&*claimed, true), config.claims_max);
    let releases = set.releases.iter().map(|(_, id)| *id);
    let max = config.claims_max - adopts.len();
    let releases = not_attempted(index, releases, (&*claimed, false), max);
    if adopts.is_empty() && releases.is_empty() {
        return None;
    }
    claimed.extend(adopts.iter().map(|pod| (pod.uid.clone(), true)));
    claimed.extend(releases.iter().map(|pod| (pod.uid.clone(), false)));
    let reasons = reasons(adopts.len(), releases.len());
    Some(Plan::new(Action::Claim { adopts, releases }, reasons))
}

/// Whether the sync has adopted one of these orphans: the adoption was answered as done, and a list shows that it was not.
pub(super) fn is_disproved(index: &Index, adoptable: &[PodId], claimed: &Claimed) -> bool {
    let mut pods = adoptable.iter().filter_map(|id| index.pod(*id));
    !claimed.is_empty() && pods.any(|pod| claimed.contains(&(pod.uid.clone(), true)))
}

/// Returns up to `count` pods that the sync has not attempted, in the order given.
fn not_attempted(
    index: &Index,
    pods: impl Iterator<Item = PodId>,
    (claimed, adopts): (&Claimed, bool),
    count: usize,
) -> Vec<PodRef> {
    let pods = pods.filter_map(|id| index.pod(id));
    let not_attempted = pods.filter(|pod| !claimed.contains(&(pod.uid.clone(), adopts)));
    not_attempted.take(count).map(Entry::pod_ref).collect()
}

fn reasons(adopts: usize, releases: usize) -> Vec<Reason> {
    let verb = |count: usize, one, many| if count == 1 { one } else { many };
    let matching = verb(adopts, "matches", "match");
    let orphans = format!("{} {matching} the selector", count(adopts, "orphan"));
    let differing = verb(releases, "does not match", "do not match");
    let owned = format!("{} {differing} the selector", count(releases, "owned pod"));
    let reasons = [
        (Rule::OrphanMatches, adopts, orphans),
        (Rule::NoLongerMatches, releases, owned),
    ];
    let reasons = reasons.into_iter().filter(|(_, count, _)| *count > 0);
    let reasons = reasons.map(|(rule, _, detail)| Reason::new(rule, detail));
    reasons.collect()
}
