//! The effects of calls on the view: expected effects when calls begin, and actual effects when answers come.

use decree::v1::FailureClass;
use jiff::Timestamp;

use crate::{
    api::{Kind, Reply, classify, leaves_effect_open},
    operation::{Answer, Stage},
    pods::WriteResult,
    view::View,
};

/// Notes the first call of an operation for a ReplicaSet.
pub(crate) fn begin(view: &mut View, replica_set: &str, step: &Stage) {
    match step {
        Stage::Create { name } => view.pods.begin_create(replica_set, name),
        Stage::Delete { pod } => view.pods.begin_delete(replica_set, &pod.uid),
        Stage::ReadCreated { .. }
        | Stage::ReadDeleted { .. }
        | Stage::Adopt { .. }
        | Stage::ReadAdopted { .. }
        | Stage::Release { .. }
        | Stage::ReadReleased { .. }
        | Stage::WriteStatus { .. }
        | Stage::RereadForStatus { .. }
        | Stage::WriteStatusAgain => {}
    }
}

/// Takes the answer to a call of an operation for a ReplicaSet. An effect that the answer leaves open may come until `end`.
pub(crate) fn answered(
    view: &mut View,
    replica_set: &str,
    step: &Stage,
    answer: &Answer,
    end: Timestamp,
) {
    if step.is_write() {
        note_write(view, answer);
    }
    absorb(view, answer);
    match step {
        Stage::Create { name } => {
            view.pods.end_create(replica_set, name, effect(answer, end));
        }
        Stage::ReadCreated { name, .. } if answer.is_ok() => {
            view.pods.end_create(replica_set, name, WriteResult::Known);
        }
        Stage::Delete { pod } => {
            if is_gone(answer) {
                view.pods.mark_gone(&pod.uid);
            }
            let effect = effect(answer, end);
            view.pods.end_delete(replica_set, &pod.uid, effect);
        }
        Stage::ReadDeleted { pod, .. }
        | Stage::Adopt { pod }
        | Stage::ReadAdopted { pod, .. }
        | Stage::Release { pod }
        | Stage::ReadReleased { pod, .. } => {
            let is_another = matches!(answer, Ok(Reply::Pod(live)) if live.uid != pod.uid);
            if is_gone(answer) || is_another {
                view.pods.mark_gone(&pod.uid);
            }
        }
        Stage::WriteStatus { .. } | Stage::WriteStatusAgain if answer.is_ok() => {
            view.pods.reset_peak(replica_set);
        }
        Stage::ReadCreated { .. }
        | Stage::WriteStatus { .. }
        | Stage::RereadForStatus { .. }
        | Stage::WriteStatusAgain => {}
    }
}

/// Takes the answer to a read that belongs to no operation.
pub(crate) fn absorb(view: &mut View, answer: &Answer) {
    match answer {
        Ok(Reply::Pod(pod)) => view.absorb_pod(pod),
        Ok(Reply::ReplicaSet(replica_set)) => view.absorb_replica_set(replica_set),
        Ok(Reply::Gone(_)) | Err(_) => {}
    }
}

fn note_write(view: &mut View, answer: &Answer) {
    match answer {
        Ok(Reply::Pod(pod)) => view.note_write(Kind::Pod, &pod.resource_version),
        Ok(Reply::Gone(version)) => view.note_write(Kind::Pod, version),
        Ok(Reply::ReplicaSet(replica_set)) => {
            view.note_write(Kind::ReplicaSet, &replica_set.projected.resource_version);
        }
        Err(_) => {}
    }
}

fn effect(answer: &Answer, end: Timestamp) -> WriteResult {
    match answer {
        Err(error) if leaves_effect_open(error) => WriteResult::Unknown(end),
        Ok(_) | Err(_) => WriteResult::Known,
    }
}

fn is_gone(answer: &Answer) -> bool {
    match answer {
        Ok(Reply::Gone(_)) => true,
        Ok(Reply::Pod(_) | Reply::ReplicaSet(_)) => false,
        Err(error) => classify(error) == FailureClass::NotFound,
    }
}
