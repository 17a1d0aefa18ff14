//! One operation's steps: from the call that starts it, over the reads that find out what became of it, to its one outcome.
//!
//! ```text
//! create ─ AlreadyExists | no answer ─▶ read the name ─▶ ours | taken | unknown
//! delete, adopt, release ─ no answer ─▶ read the pod ─▶ done | unknown
//! advise ─▶ done | unknown
//! status ─ conflict ─▶ read the replica set ─▶ write again, once
//! ```

use decree_api::v1::{self, FailureClass, done, outcome::Outcome as OutcomeKind};
use jiff::Timestamp;

use super::rules::REPLICA_FAILURE;
use crate::{
    api::{Answer, ApiError, Reply, Request, WriteStatus, classify, display, leaves_effect_open},
    budget::Verb,
    view::View,
};

/// The state of an operation: the call under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// The write of a pod, which has no UID before its create.
    Write(PodWrite, v1::ObjectRef),
    /// That write failed but may have taken effect; this read of the pod finds out.
    Read(PodWrite, v1::ObjectRef, v1::Failed),
    /// The write of a status, and that status if it may be written again.
    WriteStatus(Option<v1::ReplicaSetStatus>),
    RereadForStatus(v1::ReplicaSetStatus),
}

/// What an operation does with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodWrite {
    Create,
    Delete,
    Adopt,
    Release,
    /// Writes its deletion cost.
    Advise,
}

/// What follows the start of an operation, or an answer: a call, or the end.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a step lives until it is followed"
)]
pub(crate) enum Step {
    Call(Stage, Request),
    Finish(OutcomeKind),
}

impl Stage {
    pub(crate) fn handle_answer(self, owner: &v1::ObjectRef, answer: Answer) -> Step {
        match self {
            Self::Write(write, pod) => written(write, pod, answer),
            Self::Read(write, pod, write_failure) => {
                found(write, pod, owner, write_failure, answer)
            }
            Self::WriteStatus(status) => status_written(owner, status, answer),
            Self::RereadForStatus(status) => reread_for_status(owner, status, answer),
        }
    }

    /// The create or delete of a pod, and the pod.
    pub(crate) fn pod_change(&self) -> Option<(Verb, &v1::ObjectRef)> {
        let (Self::Write(write, pod) | Self::Read(write, pod, _)) = self else {
            return None;
        };
        let verb = match write {
            PodWrite::Create => Verb::Create,
            PodWrite::Delete => Verb::Delete,
            PodWrite::Adopt | PodWrite::Release | PodWrite::Advise => return None,
        };
        Some((verb, pod))
    }

    /// Counts the first call of an operation for the ReplicaSet with this [key](crate::view::pods::key).
    pub(crate) fn note_start(&self, view: &mut View, replica_set: &str) {
        match self.pod_change() {
            Some((Verb::Create, pod)) => view.pods.begin_create(replica_set, &pod.name),
            Some((Verb::Delete, pod)) => view.pods.begin_delete(replica_set, &pod.uid),
            None => {}
        }
    }

    /// Notes the effect of an answered call on the view. An effect that the answer leaves open may come until `end`.
    pub(crate) fn note_answer(
        &self,
        view: &mut View,
        replica_set: &str,
        answer: &Answer,
        end: Timestamp,
    ) {
        if let (Self::Write(..) | Self::WriteStatus(_), Ok(reply)) = (self, answer) {
            let (kind, version) = reply.version();
            view.note_write(kind, version);
        }
        view.absorb(answer);
        let is_open = matches!(answer, Err(error) if leaves_effect_open(error));
        let until = is_open.then_some(end);
        match self {
            Self::Write(PodWrite::Create, pod) => {
                view.pods.end_create(replica_set, &pod.name, until);
            }
            Self::Read(PodWrite::Create, pod, _) if answer.is_ok() => {
                view.pods.end_create(replica_set, &pod.name, None);
            }
            Self::Write(write, pod) | Self::Read(write, pod, _) => {
                if *write != PodWrite::Create && is_gone(answer, &pod.uid) {
                    view.pods.mark_gone(&pod.uid);
                }
                if matches!(self, Self::Write(PodWrite::Delete, _)) {
                    view.pods.end_delete(replica_set, &pod.uid, until);
                }
            }
            Self::WriteStatus(_) if answer.is_ok() => view.pods.reset_peak(replica_set),
            Self::WriteStatus(_) | Self::RereadForStatus(_) => {}
        }
    }
}

/// Writes the status on the ReplicaSet that the decision rests on; without that ReplicaSet, on the live one.
pub(crate) fn start_status(
    owner: &v1::ObjectRef,
    status: v1::ReplicaSetStatus,
    decided_on: Option<&v1::ReplicaSet>,
) -> Step {
    match decided_on {
        Some(replica_set) => {
            let request = write_status(owner, replica_set, status.clone());
            Step::Call(Stage::WriteStatus(Some(status)), request)
        }
        None => Step::Call(Stage::RereadForStatus(status), read_replica_set(owner)),
    }
}

fn write_status(
    owner: &v1::ObjectRef,
    replica_set: &v1::ReplicaSet,
    status: v1::ReplicaSetStatus,
) -> Request {
    Request::WriteStatus(WriteStatus {
        replica_set: owner.clone(),
        resource_version: replica_set.resource_version.clone(),
        status,
        selector: replica_set.selector.clone(),
    })
}

pub(crate) fn read_replica_set(owner: &v1::ObjectRef) -> Request {
    Request::ReadReplicaSet {
        namespace: owner.namespace.clone(),
        name: owner.name.clone(),
    }
}

pub(crate) fn failed(class: FailureClass, message: impl Into<String>) -> Step {
    Step::Finish(OutcomeKind::Failed(failure(class, message)))
}

fn written(write: PodWrite, pod: v1::ObjectRef, answer: Answer) -> Step {
    let error = match (answer, write) {
        (Ok(Reply::Pod(pod)), _) => return done_pod(*pod, false),
        (Ok(Reply::Gone(version)), PodWrite::Delete) => return done_gone(pod, version),
        (Ok(Reply::ReplicaSet(_) | Reply::Gone(_)), _) => return unreadable(),
        (Err(error), _) => error,
    };
    if write == PodWrite::Delete && error.code == Some(409) {
        return failed(FailureClass::Precondition, error.message);
    }
    let write_failure = refused(&error);
    let class = write_failure.failure_class();
    // Advice of unknown effect is decided again.
    let is_read = class == FailureClass::Timeout && write != PodWrite::Advise;
    let may_be_ours = write == PodWrite::Create && class == FailureClass::NameTaken;
    if !is_read && !may_be_ours {
        return Step::Finish(OutcomeKind::Failed(write_failure));
    }
    let request = Request::ReadPod {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
    };
    Step::Call(Stage::Read(write, pod, write_failure), request)
}

fn found(
    write: PodWrite,
    pod: v1::ObjectRef,
    owner: &v1::ObjectRef,
    write_failure: v1::Failed,
    answer: Answer,
) -> Step {
    use PodWrite::{Adopt, Advise, Create, Delete, Release};
    match answer {
        Ok(Reply::Pod(live)) => {
            let is_owned = is_controlled_by(&live, owner);
            match write {
                Create if is_owned && live.deletion_timestamp.is_none() => done_pod(*live, true),
                Create => {
                    let why = match live.deletion_timestamp {
                        Some(_) => "is being deleted",
                        None => "belongs to another",
                    };
                    failed(FailureClass::NameTaken, format!("pod {} {why}", pod.name))
                }
                Delete if live.uid != pod.uid => done_gone(pod, String::new()),
                Delete if live.deletion_timestamp.is_some() => done_pod(*live, false),
                Adopt | Release if live.uid != pod.uid => failed(
                    FailureClass::Precondition,
                    format!("pod {} is another", display(&pod)),
                ),
                Adopt | Release if is_owned == (write == Adopt) => done_pod(*live, false),
                Delete | Adopt | Release | Advise => {
                    Step::Finish(OutcomeKind::Failed(write_failure))
                }
            }
        }
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
        Err(error) => match (write, classify(&error) == FailureClass::NotFound) {
            (Create, false) => failed(FailureClass::Timeout, error.message),
            (Delete, true) => done_gone(pod, String::new()),
            (Adopt | Release, true) => failed(FailureClass::NotFound, error.message),
            // The pod to create was deleted between the two calls; or the create may still arrive.
            (Create, true) | (Delete | Adopt | Release, false) | (Advise, _) => {
                Step::Finish(OutcomeKind::Failed(write_failure))
            }
        },
    }
}

/// Takes the answer to a status write. After a conflict, the write is repeated once, on the live ReplicaSet.
fn status_written(
    owner: &v1::ObjectRef,
    status: Option<v1::ReplicaSetStatus>,
    answer: Answer,
) -> Step {
    match (answer, status) {
        (Ok(Reply::ReplicaSet(replica_set)), _) => {
            let set = replica_set.projected;
            let (uid, version) = (set.uid.clone(), set.resource_version.clone());
            done(uid, version, done::Object::ReplicaSet(set), false)
        }
        (Ok(Reply::Pod(_) | Reply::Gone(_)), _) => unreadable(),
        (Err(error), Some(status)) if classify(&error) == FailureClass::Conflict => {
            Step::Call(Stage::RereadForStatus(status), read_replica_set(owner))
        }
        (Err(error), _) => Step::Finish(OutcomeKind::Failed(refused(&error))),
    }
}

/// Puts the same status on the live object, unless another object has the name (W23). The conditions of others are those of the live object:
/// they may have changed since the rules were checked.
fn reread_for_status(
    owner: &v1::ObjectRef,
    mut status: v1::ReplicaSetStatus,
    answer: Answer,
) -> Step {
    match answer {
        Ok(Reply::ReplicaSet(live)) if live.projected.uid == owner.uid => {
            let is_own = |it: &v1::ReplicaSetCondition| it.r#type == REPLICA_FAILURE;
            let known = live.projected.status.iter().flat_map(|it| &it.conditions);
            let others = known.filter(|it| !is_own(it)).cloned();
            status.conditions.retain(is_own);
            status.conditions = others.chain(status.conditions).collect();
            let request = write_status(owner, &live.projected, status);
            Step::Call(Stage::WriteStatus(None), request)
        }
        Ok(Reply::ReplicaSet(live)) => {
            let (name, found) = (display(owner), live.projected.uid);
            let text = format!("replica set {name}: uid is {found}, expected {}", owner.uid);
            failed(FailureClass::Precondition, text)
        }
        Err(error) => Step::Finish(OutcomeKind::Failed(refused(&error))),
        Ok(Reply::Pod(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn done_pod(pod: v1::Pod, already_existed: bool) -> Step {
    let (uid, version) = (pod.uid.clone(), pod.resource_version.clone());
    done(uid, version, done::Object::Pod(pod), already_existed)
}

fn done_gone(pod: v1::ObjectRef, resource_version: String) -> Step {
    done(pod.uid, resource_version, done::Object::Gone(true), false)
}

fn done(
    uid: String,
    resource_version: String,
    object: done::Object,
    already_existed: bool,
) -> Step {
    Step::Finish(OutcomeKind::Done(v1::Done {
        uid,
        resource_version,
        object: Some(object),
        already_existed,
    }))
}

fn refused(error: &ApiError) -> v1::Failed {
    let class = classify(error);
    let asks = matches!(class, FailureClass::Throttled | FailureClass::Unavailable);
    let seconds = error.retry_after_seconds.filter(|_| asks);
    let retry_after = seconds.map(|seconds| prost_types::Duration {
        seconds: seconds.into(),
        nanos: 0,
    });
    v1::Failed {
        failure_class: class.into(),
        message: error.message.clone(),
        retry_after,
    }
}

pub(crate) fn failure(class: FailureClass, message: impl Into<String>) -> v1::Failed {
    v1::Failed {
        failure_class: class.into(),
        message: message.into(),
        retry_after: None,
    }
}

/// The end after a reply of the wrong kind: the effect is unknown.
fn unreadable() -> Step {
    failed(
        FailureClass::Timeout,
        "the cluster's answer is of another kind than was asked for",
    )
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

fn is_controlled_by(pod: &v1::Pod, owner: &v1::ObjectRef) -> bool {
    let controller = pod.controller.as_ref();
    controller.is_some_and(|controller| controller.uid == owner.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    #[test]
    fn status_that_is_written_again_keeps_the_conditions_of_others() {
        let condition = |kind: &str, reason: &str| v1::ReplicaSetCondition {
            r#type: kind.into(),
            reason: reason.into(),
            ..v1::ReplicaSetCondition::default()
        };
        let status = |conditions| v1::ReplicaSetStatus {
            conditions,
            ..v1::ReplicaSetStatus::default()
        };
        let mut live = tests::replica_set(12, 1);
        let conditions = [
            condition("Paused", "new"),
            condition(REPLICA_FAILURE, "old"),
        ];
        live.projected.status = Some(status(conditions.into()));
        let decided = [
            condition(REPLICA_FAILURE, "new"),
            condition("Paused", "old"),
        ];
        let decided = status(decided.into());
        let step = reread_for_status(&tests::owner(), decided, tests::replied_set(live));
        let Step::Call(_, Request::WriteStatus(write)) = step else {
            panic!("{step:?}")
        };
        let expected = [
            condition("Paused", "new"),
            condition(REPLICA_FAILURE, "new"),
        ];
        assert_eq!(write.status.conditions, expected);
    }

    #[test]
    fn cluster_that_has_too_much_to_do_says_until_when() {
        for (code, asked) in [(429, Some(7)), (503, Some(7)), (403, None)] {
            let error = ApiError {
                retry_after_seconds: Some(7),
                ..tests::refusal(code, "")
            };
            let seconds = refused(&error).retry_after.map(|it| it.seconds);
            assert_eq!(seconds, asked, "{code}");
        }
    }
}
