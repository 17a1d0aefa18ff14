//! The keys that a change queues, branch by branch as in upstream's event handlers (spec 3.2–3.6).

use crate::{
    index::{Index, PodChange, SetId},
    object::Span,
};

/// Calls `queue` with each ReplicaSet that a change of a pod affects, in order, and with the delay of its sync, if it is not at once.
/// Returns the number of ReplicaSets that match a pod without a controller (spec 3.3).
///
/// Upstream handles a deletion first and then nothing else (spec 3.5). Here several changes may come as one, so the owner that lost the pod
/// is queued first: its counts differ in any case.
pub(crate) fn pod_changed(
    index: &Index,
    change: &PodChange,
    mut queue: impl FnMut(SetId, Option<Span>),
) -> usize {
    let old = change.old.as_ref();
    let former = old.and_then(|old| old.owner);
    let Some(new) = &change.new else {
        former.into_iter().for_each(|id| queue(id, None));
        return 0;
    };
    let labels_changed = old.is_none_or(|old| old.labels != new.labels);
    let owner_changed = old.is_none_or(|old| old.controller != new.controller);
    let lost = former.filter(|_| owner_changed);
    lost.into_iter().for_each(|id| queue(id, None));
    if new.deleting || new.controller.is_some() {
        let Some(id) = new.owner else { return 0 };
        let becomes_ready = !new.deleting && new.ready && old.is_some_and(|old| !old.ready);
        if becomes_ready && let Some(delay) = availability(index, id) {
            queue(id, Some(delay));
        }
        queue(id, None);
    } else if labels_changed || owner_changed {
        let selecting = index.selecting(&new.namespace, &new.labels);
        selecting.iter().for_each(|id| queue(*id, None));
        return selecting.len();
    }
    0
}

fn availability(index: &Index, id: SetId) -> Option<Span> {
    let seconds = index.set(id)?.object.min_ready_seconds;
    (seconds > 0).then(|| Span::seconds(i64::from(seconds)))
}
