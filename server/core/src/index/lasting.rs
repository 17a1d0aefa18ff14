//! The pods that this session has created, and the effect of their end on their ReplicaSet.

use super::{
    EndedReplica, Index,
    create_back_off::{CreateBackOff, Ending, Made},
    set::SetId,
};
use crate::batch::Victim;

/// Marks the pod of this name and UID as created for a ReplicaSet now. Returns how the pod has ended already, if it is neither a
/// replica nor an orphan to adopt next.
pub(crate) fn mark_made(
    index: &mut Index,
    set: SetId,
    (namespace, name, uid): (&str, &str, Option<&str>),
) -> Option<EndedReplica> {
    let made = Made::at(index.now);
    let now = index.now;
    let known = index.set_mut(set);
    if let Some(back_off) = known.and_then(|set| set.create_back_off.as_mut()) {
        back_off.note_made(now);
    }
    let known = index.pod_named(namespace, name);
    let known = known.filter(|(_, entry)| uid.is_none_or(|uid| entry.uid.is(uid)));
    let Some((id, entry)) = known else {
        let ending = Ending::Gone;
        return Some(EndedReplica { set, made, ending });
    };
    let selector = index.set(set).and_then(|set| set.selector());
    let labels = index.groups.at(entry.group).labels.as_ref();
    let is_adoptable = entry.controller.is_none()
        && entry.state.is_active()
        && selector.is_some_and(|selector| labels.is_some_and(|it| selector.matches(it)));
    if !is_adoptable && let Some(ended) = index.ended_replica(id, set) {
        return Some(EndedReplica { made, ..ended });
    }
    if let Some(entry) = index.pods.get_mut(id) {
        entry.made = made;
    }
    None
}

/// Notes that pods are about to be deleted: their end says nothing about how long pods last.
pub(crate) fn expect_end(index: &mut Index, namespace: &str, victims: &[Victim]) {
    for Victim { pod, .. } in victims {
        let known = index.pod_named(namespace, &pod.name).map(|(id, _)| id);
        if let Some(entry) = known.and_then(|id| index.pods.get_mut(id)) {
            entry.made = Made::default();
        }
    }
}

/// Records the end of a replica. Returns whether that closes the creates of its ReplicaSet.
pub(crate) fn end_replica(index: &mut Index, ended: EndedReplica) -> bool {
    let EndedReplica { set, made, ending } = ended;
    let now = index.now;
    if !made.is_recent(now) {
        return false;
    }
    let known = index.set_mut(set).map(|set| set.create_back_off.take());
    let Some(back_off) = known else { return false };
    let mut back_off = back_off.unwrap_or_else(|| Box::new(CreateBackOff::new(now, ending)));
    let closes = back_off.end(now, (made, ending), |has_lasted| {
        let pods = index.active_pods(set);
        pods.filter(|(_, pod)| has_lasted(pod.made)).count()
    });
    if let Some(set) = index.set_mut(set) {
        set.create_back_off = Some(back_off);
    }
    closes
}
