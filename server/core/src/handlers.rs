//! The keys that a change queues, branch by branch as in upstream's event handlers (spec 3.2–3.6). The sync itself schedules the check of
//! availability.

use crate::index::{Index, PodChange, SetId};

/// Calls `queue` with each ReplicaSet that a change of a pod affects, in order.
///
/// Upstream handles a deletion first and then nothing else (spec 3.5). Here several changes may come as one, so the owner that lost the pod
/// is queued first: its counts differ in any case.
pub(crate) fn pod_changed(index: &Index, change: &PodChange, mut queue: impl FnMut(SetId)) {
    let PodChange {
        former,
        owner,
        labels_changed,
        owner_changed,
        ..
    } = *change;
    let pod = change.pod.and_then(|id| index.pod(id));
    let lost = former.filter(|_| pod.is_none() || owner_changed);
    lost.into_iter().for_each(&mut queue);
    let Some(pod) = pod else { return };
    let group = index.groups.at(pod.group);
    if pod.state.deleting || group.controller.is_some() {
        owner.into_iter().for_each(queue);
    } else if labels_changed || owner_changed {
        let labels = group.labels.iter();
        let selecting = labels.flat_map(|labels| index.selecting(&group.namespace, labels));
        selecting.for_each(queue);
    }
}
