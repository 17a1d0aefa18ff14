//! The end of a list says what is gone: what the list did not name.

use super::Controller;
use crate::{
    index::Listed,
    object::{Kind, ResourceVersion, Timestamp},
    queue::Priority,
};

// === impl Controller ===

impl Controller {
    /// Ends a list. One that is older than a write of ours is not used: the view stays partial until a newer one is complete.
    pub(super) fn end_list(
        &mut self,
        now: Timestamp,
        kind: Kind,
        version: Option<ResourceVersion>,
    ) {
        let Some(number) = self.lists.open(kind) else {
            return;
        };
        if !self.consistency.covers(kind, version) {
            return self.request_list(kind, "the list is older than a write already reported");
        }
        let is_older = self.consistency.is_older(kind, version);
        let shown = self.consistency.seen(kind).filter(|_| is_older);
        let list = Listed {
            number,
            version,
            shown,
        };
        match kind {
            Kind::Pod => self.take_pod_list(now, &list, is_older),
            Kind::ReplicaSet => self.take_set_list(&list),
        }
        self.lists.complete(kind, number);
        self.index.end_doubts(kind);
        self.consistency.listed(kind, version);
        self.saw(now, kind, version);
        self.resume_waiting(now);
    }

    /// Takes out the pods that a list did not name, in the order of their names. A list that is older than the stream may name what is gone.
    fn take_pod_list(&mut self, now: Timestamp, list: &Listed, is_older: bool) {
        let unlisted = self.index.unlisted_pods(list);
        if !is_older {
            self.index.forget_unlisted(Kind::Pod, list.number);
        }
        for id in unlisted {
            let gone = self.index.take_out_pod(id);
            self.pods_changed(now, Priority::Resync, [gone]);
        }
    }

    /// Takes out the ReplicaSets that a list did not name, in the order in which they came.
    fn take_set_list(&mut self, list: &Listed) {
        for id in self.index.unlisted_sets(list) {
            self.index.take_out_set(id);
            self.forget_set(id);
        }
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
