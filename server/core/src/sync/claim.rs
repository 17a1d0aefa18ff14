//! Which pods change owner (spec 5.3): orphans that match are adopted, owned pods that do not match are released.
//!
//! The index keeps both sets up to date, so nothing is searched here. A failure ends the sync; those that spec 5.3 ignores do not.

use std::{collections::BTreeSet, sync::Arc};

use super::{End, Next, Step, Tally};
use crate::{
    batch::{Action, PodRef},
    controller::Controller,
    index::{Entry, Index, PodId, Set, SetId},
    object::{Timestamp, Uid},
    report::{Reason, Rule},
};

/// How many pods one batch claims, so that it fits a frame of the stream; the rest follows in the same sync.
const OPERATIONS_MAX: usize = 5_000;

/// Pods by name.
type ByName = BTreeSet<(Arc<str>, PodId)>;

/// The pods that a sync has claimed: each is tried once a sync, also one whose failure is ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    tried: BTreeSet<Uid>,
}

// === impl Controller ===

impl Controller {
    /// Claims the pods that were not tried in this sync, those that appeared amid it included, and goes on to manage where there are none.
    pub(super) fn claim(&mut self, now: Timestamp, id: SetId, mut progress: Progress) -> Next {
        let Some((adopts, releases)) = self.index.set(id).and_then(claimable) else {
            return self.manage(now, id);
        };
        let adopts = self.index.refer(adopts, &progress, OPERATIONS_MAX);
        let room = OPERATIONS_MAX - adopts.len();
        let releases = self.index.refer(releases, &progress, room);
        if adopts.is_empty() && releases.is_empty() {
            return self.manage(now, id);
        }
        let claimed = adopts.iter().chain(&releases);
        progress.tried.extend(claimed.map(|pod| pod.uid.clone()));
        let reasons = reasons(adopts.len(), releases.len());
        Next::Send(
            Action::Claim { adopts, releases },
            reasons,
            Step::Claim(progress),
        )
    }
}

// === impl Index ===

impl Index {
    /// Returns up to `count` pods that were not tried, by name.
    fn refer(&self, pods: &ByName, progress: &Progress, count: usize) -> Vec<PodRef> {
        let pods = pods.iter().filter_map(|(_, id)| self.pod(*id));
        let untried = pods.filter(|pod| !progress.tried.contains(&pod.uid));
        let refer = |pod: &Entry| PodRef {
            name: Arc::clone(&pod.name),
            uid: pod.uid.clone(),
        };
        untried.take(count).map(refer).collect()
    }
}

/// Returns how the sync ends if the claim failed; `None` if it goes on.
pub(super) fn failure(tally: Tally) -> Option<End> {
    let failed = tally.error.is_some() || tally.afresh || tally.not_executed;
    failed.then(|| End {
        afresh: tally.afresh,
        retry_after: tally.retry_after,
        error: tally.message(),
        requeue_at: None,
    })
}

/// Returns how many operations a claim may have.
pub(super) fn weight(set: &Set) -> usize {
    claimable(set).map_or(0, |(adopts, releases)| {
        (adopts.len() + releases.len()).min(OPERATIONS_MAX)
    })
}

/// Returns the pods to adopt and to release, unless the ReplicaSet is being deleted.
fn claimable(set: &Set) -> Option<(&ByName, &ByName)> {
    (!set.object.deleting).then_some((&set.adopts, &set.releases))
}

fn reasons(adopts: usize, releases: usize) -> Vec<Reason> {
    let reasons = [
        (Rule::OrphanMatches, adopts, "orphans match the selector"),
        (
            Rule::NoLongerMatches,
            releases,
            "owned pods do not match the selector",
        ),
    ];
    let reasons = reasons.into_iter().filter(|(_, count, _)| *count > 0);
    reasons
        .map(|(rule, count, what)| Reason {
            rule,
            detail: format!("{count} {what}"),
        })
        .collect()
}
