//! One operation's steps: from the call that starts it, over the reads that find out what became of it, to its one outcome.
//!
//! ```text
//! create ─ AlreadyExists | no answer ─▶ read the name ─▶ ours | taken | unknown
//! delete, adopt, release ─ no answer ─▶ read the pod ─▶ done | unknown
//! status ─ conflict ─▶ read the replica set ─▶ write again, once
//! ```

use decree::v1::{self, FailureClass, done, outcome::Outcome as Kind};

use crate::{
    api::{ApiError, Reply, Request, WriteStatus, classify, display},
    recorder::Note,
};

/// The state of an operation: the call under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    Create {
        name: String,
    },
    /// The create failed but may have taken effect; this read finds out.
    ReadCreated {
        name: String,
        write_failure: v1::Failed,
    },
    Delete {
        pod: v1::ObjectRef,
    },
    ReadDeleted {
        pod: v1::ObjectRef,
        write_failure: v1::Failed,
    },
    Adopt {
        pod: v1::ObjectRef,
    },
    ReadAdopted {
        pod: v1::ObjectRef,
        write_failure: v1::Failed,
    },
    Release {
        pod: v1::ObjectRef,
    },
    ReadReleased {
        pod: v1::ObjectRef,
        write_failure: v1::Failed,
    },
    WriteStatus {
        status: v1::ReplicaSetStatus,
    },
    RereadForStatus {
        status: v1::ReplicaSetStatus,
    },
    WriteStatusAgain,
}

pub(crate) type Answer = Result<Reply, ApiError>;

/// The name or UID of a pod that an operation creates or deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodChange {
    Created(String),
    Deleted(String),
}

/// The step after an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    Call(Stage, Request),
    Finish(Kind),
}

// === impl Stage ===

impl Stage {
    pub(crate) fn handle_answer(self, owner: &v1::ObjectRef, answer: Answer) -> Next {
        match self {
            Self::Create { name } => created(owner, name, answer),
            Self::ReadCreated {
                name,
                write_failure,
            } => read_created(owner, &name, write_failure, answer),
            Self::Delete { pod } => deleted(pod, answer),
            Self::ReadDeleted { pod, write_failure } => read_deleted(pod, write_failure, answer),
            Self::Adopt { pod } => patched(answer, pod, |pod, write_failure| Self::ReadAdopted {
                pod,
                write_failure,
            }),
            Self::Release { pod } => patched(answer, pod, |pod, write_failure| {
                Self::ReadReleased { pod, write_failure }
            }),
            Self::ReadAdopted { pod, write_failure } => {
                read_patched(owner, &pod, write_failure, answer, true)
            }
            Self::ReadReleased { pod, write_failure } => {
                read_patched(owner, &pod, write_failure, answer, false)
            }
            Self::WriteStatus { status } => status_written(owner, status, answer),
            Self::RereadForStatus { status } => reread_for_status(owner, status, answer),
            Self::WriteStatusAgain => status_written_again(answer),
        }
    }

    pub(crate) fn pod_change(&self) -> Option<PodChange> {
        match self {
            Self::Create { name } | Self::ReadCreated { name, .. } => {
                Some(PodChange::Created(name.clone()))
            }
            Self::Delete { pod } | Self::ReadDeleted { pod, .. } => {
                Some(PodChange::Deleted(pod.name.clone()))
            }
            Self::Adopt { .. }
            | Self::ReadAdopted { .. }
            | Self::Release { .. }
            | Self::ReadReleased { .. }
            | Self::WriteStatus { .. }
            | Self::RereadForStatus { .. }
            | Self::WriteStatusAgain => None,
        }
    }

    /// True if the call writes. The agent's view must not fall behind the state in its answer.
    pub(crate) const fn is_write(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::Delete { .. }
            | Self::Adopt { .. }
            | Self::Release { .. }
            | Self::WriteStatus { .. }
            | Self::WriteStatusAgain => true,
            Self::ReadCreated { .. }
            | Self::ReadDeleted { .. }
            | Self::ReadAdopted { .. }
            | Self::ReadReleased { .. }
            | Self::RereadForStatus { .. } => false,
        }
    }
}

// === impl PodChange ===

impl PodChange {
    /// The message to people about an outcome.
    pub(crate) fn note(&self, owner: &v1::ObjectRef, outcome: &Kind) -> Option<Note> {
        match self {
            Self::Created(name) => Note::of_create(owner, name, outcome),
            Self::Deleted(name) => Note::of_delete(owner, name, outcome),
        }
    }
}

pub(crate) fn start_delete(victim: v1::ObjectRef, version: String) -> Next {
    let request = Request::DeletePod {
        pod: victim.clone(),
        resource_version: Some(version).filter(|version| !version.is_empty()),
    };
    Next::Call(Stage::Delete { pod: victim }, request)
}

pub(crate) fn start_adopt(controller: v1::OwnerReference, pod: v1::ObjectRef) -> Next {
    let request = Request::AdoptPod {
        pod: pod.clone(),
        controller,
    };
    Next::Call(Stage::Adopt { pod }, request)
}

pub(crate) fn start_release(owner: &v1::ObjectRef, pod: v1::ObjectRef) -> Next {
    let request = Request::ReleasePod {
        pod: pod.clone(),
        owner_uid: owner.uid.clone(),
    };
    Next::Call(Stage::Release { pod }, request)
}

/// Writes the status on the ReplicaSet that the decision rests on; without that ReplicaSet, on the live one.
pub(crate) fn start_status(
    owner: &v1::ObjectRef,
    status: v1::ReplicaSetStatus,
    decided_on: Option<&v1::ReplicaSet>,
) -> Next {
    match decided_on {
        Some(replica_set) => {
            let request = write_status(owner, replica_set, status.clone());
            Next::Call(Stage::WriteStatus { status }, request)
        }
        None => Next::Call(Stage::RereadForStatus { status }, read_replica_set(owner)),
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

pub(crate) fn failed(class: FailureClass, message: impl Into<String>) -> Next {
    Next::Finish(Kind::Failed(failure(class, message)))
}

fn created(owner: &v1::ObjectRef, name: String, answer: Answer) -> Next {
    match answer {
        Ok(Reply::Pod(pod)) => done_pod(*pod),
        Err(error) => {
            let write_failure = refused(&error);
            if !matches!(
                write_failure.class(),
                FailureClass::NameTaken | FailureClass::Timeout
            ) {
                return Next::Finish(Kind::Failed(write_failure));
            }
            let namespace = owner.namespace.clone();
            let request = Request::ReadPod {
                namespace,
                name: name.clone(),
            };
            Next::Call(
                Stage::ReadCreated {
                    name,
                    write_failure,
                },
                request,
            )
        }
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn read_created(
    owner: &v1::ObjectRef,
    name: &str,
    write_failure: v1::Failed,
    answer: Answer,
) -> Next {
    match answer {
        Ok(Reply::Pod(pod)) if is_controlled_by(&pod, owner) && pod.deleted.is_none() => {
            Next::Finish(Kind::Done(v1::Done {
                uid: pod.uid.clone(),
                resource_version: pod.resource_version.clone(),
                object: Some(done::Object::Pod(*pod)),
                already_existed: true,
            }))
        }
        Ok(Reply::Pod(pod)) if pod.deleted.is_some() => failed(
            FailureClass::NameTaken,
            format!("pod {name} is being deleted"),
        ),
        Ok(Reply::Pod(_)) => failed(
            FailureClass::NameTaken,
            format!("pod {name} belongs to another"),
        ),
        // The pod with the name was deleted between the two calls; or the create may still arrive.
        Err(error) if classify(&error) == FailureClass::NotFound => {
            Next::Finish(Kind::Failed(write_failure))
        }
        Err(error) => failed(FailureClass::Timeout, error.message),
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn deleted(pod: v1::ObjectRef, answer: Answer) -> Next {
    match answer {
        Ok(Reply::Pod(pod)) => done_pod(*pod),
        Ok(Reply::Gone(version)) => done_gone(pod, version),
        Err(error) if error.code == Some(409) => failed(FailureClass::Precondition, error.message),
        Err(error) => resolve_or_report(refused(&error), pod, |pod, write_failure| {
            Stage::ReadDeleted { pod, write_failure }
        }),
        Ok(Reply::ReplicaSet(_)) => unreadable(),
    }
}

fn read_deleted(pod: v1::ObjectRef, write_failure: v1::Failed, answer: Answer) -> Next {
    match answer {
        Ok(Reply::Pod(live)) if live.uid != pod.uid => done_gone(pod, String::new()),
        Ok(Reply::Pod(live)) if live.deleted.is_some() => done_pod(*live),
        Err(error) if classify(&error) == FailureClass::NotFound => done_gone(pod, String::new()),
        Ok(Reply::Pod(_)) | Err(_) => Next::Finish(Kind::Failed(write_failure)),
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn patched(
    answer: Answer,
    pod: v1::ObjectRef,
    read: impl FnOnce(v1::ObjectRef, v1::Failed) -> Stage,
) -> Next {
    match answer {
        Ok(Reply::Pod(pod)) => done_pod(*pod),
        Err(error) => resolve_or_report(refused(&error), pod, read),
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn read_patched(
    owner: &v1::ObjectRef,
    pod: &v1::ObjectRef,
    write_failure: v1::Failed,
    answer: Answer,
    wanted_owned: bool,
) -> Next {
    match answer {
        Ok(Reply::Pod(live)) if live.uid != pod.uid => failed(
            FailureClass::Precondition,
            format!("pod {} is another", display(pod)),
        ),
        Ok(Reply::Pod(live)) if is_controlled_by(&live, owner) == wanted_owned => done_pod(*live),
        Err(error) if classify(&error) == FailureClass::NotFound => {
            failed(FailureClass::NotFound, error.message)
        }
        Ok(Reply::Pod(_)) | Err(_) => Next::Finish(Kind::Failed(write_failure)),
        Ok(Reply::ReplicaSet(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn status_written(owner: &v1::ObjectRef, status: v1::ReplicaSetStatus, answer: Answer) -> Next {
    match answer {
        Err(error) if classify(&error) == FailureClass::Conflict => {
            Next::Call(Stage::RereadForStatus { status }, read_replica_set(owner))
        }
        Ok(_) | Err(_) => status_written_again(answer),
    }
}

/// Puts the same status on the live object, unless another object has the name (W23).
fn reread_for_status(owner: &v1::ObjectRef, status: v1::ReplicaSetStatus, answer: Answer) -> Next {
    match answer {
        Ok(Reply::ReplicaSet(live)) if live.projected.uid == owner.uid => {
            let request = write_status(owner, &live.projected, status);
            Next::Call(Stage::WriteStatusAgain, request)
        }
        Ok(Reply::ReplicaSet(live)) => {
            let (name, found) = (display(owner), live.projected.uid);
            let text = format!("replica set {name}: uid is {found}, wanted {}", owner.uid);
            failed(FailureClass::Precondition, text)
        }
        Err(error) => Next::Finish(Kind::Failed(refused(&error))),
        Ok(Reply::Pod(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn status_written_again(answer: Answer) -> Next {
    match answer {
        Ok(Reply::ReplicaSet(replica_set)) => {
            let replica_set = replica_set.projected;
            Next::Finish(Kind::Done(v1::Done {
                uid: replica_set.uid.clone(),
                resource_version: replica_set.resource_version.clone(),
                object: Some(done::Object::ReplicaSet(replica_set)),
                already_existed: false,
            }))
        }
        Err(error) => Next::Finish(Kind::Failed(refused(&error))),
        Ok(Reply::Pod(_) | Reply::Gone(_)) => unreadable(),
    }
}

fn resolve_or_report(
    write_failure: v1::Failed,
    pod: v1::ObjectRef,
    read: impl FnOnce(v1::ObjectRef, v1::Failed) -> Stage,
) -> Next {
    if write_failure.class() != FailureClass::Timeout {
        return Next::Finish(Kind::Failed(write_failure));
    }
    let request = Request::ReadPod {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
    };
    Next::Call(read(pod, write_failure), request)
}

fn done_pod(pod: v1::Pod) -> Next {
    Next::Finish(Kind::Done(v1::Done {
        uid: pod.uid.clone(),
        resource_version: pod.resource_version.clone(),
        object: Some(done::Object::Pod(pod)),
        already_existed: false,
    }))
}

fn done_gone(pod: v1::ObjectRef, resource_version: String) -> Next {
    Next::Finish(Kind::Done(v1::Done {
        uid: pod.uid,
        resource_version,
        object: Some(done::Object::Gone(true)),
        already_existed: false,
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
        class: class.into(),
        message: error.message.clone(),
        retry_after,
    }
}

pub(crate) fn failure(class: FailureClass, message: impl Into<String>) -> v1::Failed {
    v1::Failed {
        class: class.into(),
        message: message.into(),
        retry_after: None,
    }
}

/// The end after a reply of the wrong kind: the effect is unknown.
fn unreadable() -> Next {
    failed(
        FailureClass::Timeout,
        "the cluster's answer is of another kind than was asked for",
    )
}

fn is_controlled_by(pod: &v1::Pod, owner: &v1::ObjectRef) -> bool {
    pod.controller
        .as_ref()
        .is_some_and(|controller| controller.uid == owner.uid)
}

#[cfg(test)]
mod tests;
