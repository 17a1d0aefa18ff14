//! The choice of victims among very many pods, a little at a time.

use super::rank::{self, Candidate, Chosen, Shortlist};
use crate::{
    index::{Index, PodId, Related, SetId},
    object::Timestamp,
    work::Work,
};

/// How many pods are looked at for a unit of work.
const LOOKS_PER_UNIT: usize = 8;

/// How far a choice is.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) set: SetId,
    count: usize,
    now: Timestamp,
    related: Related,
    shortlist: Shortlist<PodId>,
    stage: Stage,
    /// How many pods have been looked at in this stage.
    looked_at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    First,
    Second,
}

// === impl Choice ===

impl Choice {
    /// Begins to choose `count` of more active pods.
    pub(crate) fn new(index: &Index, set: SetId, count: usize, now: Timestamp) -> Self {
        Self {
            set,
            count,
            now,
            related: index.related(set),
            shortlist: Shortlist::new(count, now),
            stage: Stage::First,
            looked_at: 0,
        }
    }

    /// Goes on to choose. Returns whether all pods have been looked at, or the work is spent.
    pub(crate) fn go_on(&mut self, index: &Index, work: &mut Work) -> bool {
        if !index.count_related(&mut self.related, work) {
            return false;
        }
        loop {
            if work.is_spent() {
                return false;
            }
            let pods = index.owned_from(self.set, self.looked_at, LOOKS_PER_UNIT);
            if !pods.is_empty() {
                work.spend(1);
                self.looked_at += pods.len();
                self.look(index, pods);
            } else if self.stage == Stage::First && self.shortlist.end_first_look() {
                (self.stage, self.looked_at) = (Stage::Second, 0);
            } else {
                return true;
            }
        }
    }

    /// Returns the pods that go, in the order of choice.
    pub(crate) fn finish(self, index: &Index) -> Vec<Chosen<PodId>> {
        let (listed, youngest) = self.shortlist.finish();
        let candidates = listed.into_iter();
        let candidates = candidates.filter_map(|id| candidate(index, &self.related, id));
        let candidates: Vec<_> = candidates.collect();
        rank::choose_among(&candidates, self.count, self.now, youngest)
    }

    fn look(&mut self, index: &Index, pods: &[PodId]) {
        for id in pods {
            let Some(candidate) = candidate(index, &self.related, *id) else {
                continue;
            };
            match self.stage {
                Stage::First => self.shortlist.look(&candidate),
                Stage::Second => self.shortlist.look_again(&candidate),
            }
        }
    }
}

/// Returns a pod as the choice sees it, if it is active.
fn candidate<'a>(index: &'a Index, related: &Related, id: PodId) -> Option<Candidate<'a, PodId>> {
    let pod = index.pod(id).filter(|pod| pod.counted.active)?;
    Some(Candidate {
        id,
        node: index.node_of(pod).map(|node| &**node),
        state: &pod.state,
        rank: related.on(pod.node),
        uid: &pod.uid,
    })
}
