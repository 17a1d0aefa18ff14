//! What calls mean for the view: what they are about to do when they begin, and what they did when they are answered.

use decree::v1::FailureClass;
use jiff::Timestamp;

use crate::{
    api::{Kind, Reply, classify, leaves_effect_open},
    operation::{Answer, Step},
    pods::Effect,
    view::View,
};

/// Notes that the first call of an operation for a ReplicaSet is made.
pub(crate) fn begin(view: &mut View, replica_set: &str, step: &Step) {
    match step {
        Step::Create { name } => view.pods.begin_create(replica_set, name),
        Step::Delete { pod } => view.pods.begin_delete(replica_set, &pod.uid),
        Step::ReadCreated { .. }
        | Step::ReadDeleted { .. }
        | Step::Adopt { .. }
        | Step::ReadAdopted { .. }
        | Step::Release { .. }
        | Step::ReadReleased { .. }
        | Step::WriteStatus { .. }
        | Step::RereadForStatus { .. }
        | Step::WriteStatusAgain => {}
    }
}

/// Takes the answer to a call of an operation for a ReplicaSet. Where it leaves the effect open, there may be one until `end`.
pub(crate) fn answered(
    view: &mut View,
    replica_set: &str,
    step: &Step,
    answer: &Answer,
    end: Timestamp,
) {
    if step.is_write() {
        note_write(view, answer);
    }
    absorb(view, answer);
    match step {
        Step::Create { name } => {
            view.pods.end_create(replica_set, name, effect(answer, end));
        }
        Step::ReadCreated { name, .. } if answer.is_ok() => {
            view.pods.end_create(replica_set, name, Effect::Known);
        }
        Step::Delete { pod } => {
            if is_gone(answer) {
                view.pods.mark_gone(&pod.uid);
            }
            let effect = effect(answer, end);
            view.pods.end_delete(replica_set, &pod.uid, effect);
        }
        Step::ReadDeleted { pod, .. }
        | Step::Adopt { pod }
        | Step::ReadAdopted { pod, .. }
        | Step::Release { pod }
        | Step::ReadReleased { pod, .. } => {
            let is_another = matches!(answer, Ok(Reply::Pod(live)) if live.uid != pod.uid);
            if is_gone(answer) || is_another {
                view.pods.mark_gone(&pod.uid);
            }
        }
        Step::WriteStatus { .. } | Step::WriteStatusAgain if answer.is_ok() => {
            view.pods.reset_peak(replica_set);
        }
        Step::ReadCreated { .. }
        | Step::WriteStatus { .. }
        | Step::RereadForStatus { .. }
        | Step::WriteStatusAgain => {}
    }
}

/// Takes what a read shows that belongs to no operation.
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

fn effect(answer: &Answer, end: Timestamp) -> Effect {
    match answer {
        Err(error) if leaves_effect_open(error) => Effect::Unknown(end),
        Ok(_) | Err(_) => Effect::Known,
    }
}

fn is_gone(answer: &Answer) -> bool {
    match answer {
        Ok(Reply::Gone(_)) => true,
        Ok(Reply::Pod(_) | Reply::ReplicaSet(_)) => false,
        Err(error) => classify(error) == FailureClass::NotFound,
    }
}
