//! What news have left to be done is done a little at a time, before other news are taken and before anything is decided, so that it makes no
//! difference when it is done.

use std::sync::Arc;

use super::{
    Controller,
    leftover::{EndedList, Leftover, Offer},
};
use crate::{
    handlers::ASKED_AT_ONCE,
    index::PodFacts,
    object::{Kind, Timestamp},
    queue::Priority,
    report::Report,
    work::Work,
};

/// How many ReplicaSets are asked and queued within a unit of work.
const ASKED_PER_UNIT: usize = 4;

// === impl Controller ===

impl Controller {
    /// Goes on with what news have left to be done. Returns whether that is all; if not, the work is spent.
    pub fn resume(&mut self, now: Timestamp, work: &mut Work) -> bool {
        let now = self.tick(now);
        while let Some(mut leftover) = self.leftovers.pop_front() {
            if !self.go_on_with(now, &mut leftover, work) {
                self.leftovers.push_front(leftover);
                work.pause();
                return false;
            }
        }
        true
    }

    /// Does what is left, since there are news. What was prepared for a decision is not used: the view will be another.
    pub(super) fn finish_leftovers(&mut self, now: Timestamp) {
        self.choosing = None;
        if !self.leftovers.is_empty() {
            self.resume(now, &mut Work::units(0));
        }
    }

    fn go_on_with(&mut self, now: Timestamp, leftover: &mut Leftover, work: &mut Work) -> bool {
        match leftover {
            Leftover::Count(id) => self.index.count_on(now, *id, work),
            Leftover::Forget(kind, version) => self.index.forget_gone(*kind, *version, work),
            Leftover::Offer(offer) => self.offer_on(offer, work),
            Leftover::EndList(list) => {
                let is_taken = match list.kind {
                    Kind::Pod => self.take_pod_list(now, list, work),
                    Kind::ReplicaSet => self.take_set_list(list, work),
                };
                if is_taken {
                    self.complete_list(now, list);
                }
                is_taken
            }
        }
    }

    /// Queues the other ReplicaSets that may adopt an orphan.
    fn offer_on(&mut self, offer: &mut Offer, work: &mut Work) -> bool {
        while let Some(last) = offer.last {
            if work.is_spent() {
                return false;
            }
            let PodFacts {
                namespace, labels, ..
            } = &offer.pod;
            let more = self
                .index
                .selecting(namespace, labels, Some(last), ASKED_AT_ONCE);
            work.spend(ASKED_AT_ONCE / ASKED_PER_UNIT + labels.len() / ASKED_PER_UNIT);
            offer.matches += more.ids.len();
            offer.last = more.next;
            for id in more.ids {
                self.queue.add(id, offer.priority);
            }
        }
        if offer.matches > 1 {
            let PodFacts {
                namespace, name, ..
            } = &offer.pod;
            self.reports.push(Report::OrphanMatchesMany {
                pod: (Arc::clone(namespace), Arc::clone(name)),
                matches: offer.matches,
            });
        }
        true
    }

    /// Takes what a list of pods says by not naming them.
    fn take_pod_list(&mut self, now: Timestamp, list: &mut EndedList, work: &mut Work) -> bool {
        let EndedList {
            number,
            version,
            sweep,
            ..
        } = list;
        if !self.index.find_stale_pods(sweep, work) {
            return false;
        }
        // A list that is older than the stream may name what is gone.
        let is_older = self.consistency.is_older(Kind::Pod, *version);
        if !is_older && !self.index.forget_unlisted(Kind::Pod, *number, work) {
            return false;
        }
        while !work.is_spent() {
            let Some(gone) = self.index.take_stale_pod(sweep) else {
                return true;
            };
            work.spend(1);
            self.pods_changed(now, Priority::Resync, [gone]);
        }
        false
    }

    /// Takes what a list of ReplicaSets says by not naming them.
    fn take_set_list(&mut self, list: &mut EndedList, work: &mut Work) -> bool {
        if !self.index.find_stale_sets(&mut list.sweep, work) {
            return false;
        }
        while !work.is_spent() {
            let Some(gone) = self.index.take_stale_set(&mut list.sweep, work) else {
                return true;
            };
            self.forget_set(gone);
        }
        false
    }

    /// Completes a list of which all is taken.
    fn complete_list(&mut self, now: Timestamp, list: &EndedList) {
        let EndedList {
            kind,
            number,
            version,
            ..
        } = *list;
        self.lists.complete(kind, number);
        self.index.end_doubts(kind);
        self.consistency.listed(kind, version);
        self.saw(now, kind, version);
        self.resume_waiting(now);
    }

    /// Lets the syncs go on whose writes the lists have shown by now.
    fn resume_waiting(&mut self, now: Timestamp) {
        if self.waiting.is_empty() {
            return;
        }
        let shown = self.waiting.iter();
        let shown = shown.filter(|(_, waiting)| self.lists.show(&waiting.unseen));
        let shown: Vec<_> = shown.map(|(id, _)| *id).collect();
        for id in shown {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.mark_listed(now, id, &waiting.namespace, &waiting.unseen);
                self.free_names(&waiting.namespace, &waiting.unseen);
                self.answered.push_back((id, waiting.result));
                // The lists may show another state than the sync that waited will leave.
                self.queue.add(id, Priority::Live);
            }
        }
        self.request_missing();
    }
}
