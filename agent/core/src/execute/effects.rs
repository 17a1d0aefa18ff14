//! The effects of calls on the view: expected effects when calls begin, and actual effects when answers come.

use decree::v1::FailureClass;
use jiff::Timestamp;

use super::operation::{Answer, PodWrite, Stage};
use crate::{
    api::{Reply, classify, leaves_effect_open},
    view::View,
};

/// Notes the first call of an operation for a ReplicaSet with this [key](crate::view::pods::key).
pub(crate) fn begin(view: &mut View, replica_set: &str, step: &Stage) {
    let Stage::Write(write, pod) = step else {
        return;
    };
    match write {
        PodWrite::Create => view.pods.begin_create(replica_set, &pod.name),
        PodWrite::Delete => view.pods.begin_delete(replica_set, &pod.uid),
        PodWrite::Adopt | PodWrite::Release => {}
    }
}

/// Takes the answer to a call of an operation for a ReplicaSet with this [key](crate::view::pods::key). An effect that the answer leaves open may come until `end`.
pub(crate) fn answered(
    view: &mut View,
    replica_set: &str,
    step: &Stage,
    answer: &Answer,
    end: Timestamp,
) {
    if let (Stage::Write(..) | Stage::WriteStatus(_), Ok(reply)) = (step, answer) {
        let (kind, version) = reply.version();
        view.note_write(kind, version);
    }
    absorb(view, answer);
    let is_open = matches!(answer, Err(error) if leaves_effect_open(error));
    let until = is_open.then_some(end);
    match step {
        Stage::Write(PodWrite::Create, pod) => {
            view.pods.end_create(replica_set, &pod.name, until);
        }
        Stage::Read(PodWrite::Create, pod, _) if answer.is_ok() => {
            view.pods.end_create(replica_set, &pod.name, None);
        }
        Stage::Write(write, pod) | Stage::Read(write, pod, _) => {
            if *write != PodWrite::Create && is_gone(answer, &pod.uid) {
                view.pods.mark_gone(&pod.uid);
            }
            if matches!(step, Stage::Write(PodWrite::Delete, _)) {
                view.pods.end_delete(replica_set, &pod.uid, until);
            }
        }
        Stage::WriteStatus(_) if answer.is_ok() => view.pods.reset_peak(replica_set),
        Stage::WriteStatus(_) | Stage::RereadForStatus(_) => {}
    }
}

/// Takes the object of an answer, unless the watch is past it: a pod that the watch shows as gone stays gone.
pub(crate) fn absorb(view: &mut View, answer: &Answer) {
    match answer {
        Ok(reply) if !view.is_ahead(reply.version()) => {}
        Ok(Reply::Pod(pod)) => view.pods.apply(pod),
        Ok(Reply::ReplicaSet(replica_set)) => view.apply_replica_set(replica_set),
        Ok(Reply::Gone(_)) | Err(_) => {}
    }
}

/// True if the pod with this UID is gone, as the answer says.
fn is_gone(answer: &Answer, uid: &str) -> bool {
    match answer {
        Ok(Reply::Gone(_)) => true,
        Ok(Reply::Pod(live)) => live.uid != uid,
        Ok(Reply::ReplicaSet(_)) => false,
        Err(error) => classify(error) == FailureClass::NotFound,
    }
}
