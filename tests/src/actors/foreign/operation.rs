//! One operation: its calls, and the meaning of their answers.

use std::time::Duration;

use agent_core::api::{ApiError, CreatePod, ReplicaSet, Reply, Request, WriteStatus};
use decree::v1::{self, FailureClass, done, outcome::Outcome as Kind};

/// The maximum number of repeated status writes after a conflict.
const CONFLICTS_MAX: u8 = 1;

/// The next step of an operation.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Creates a pod of this name.
    Create(String),
    /// Reads the existing pod of the name to find its owner.
    ReadNamesake(String),
    Delete(v1::Victim),
    /// Reads the ReplicaSet before it adopts a pod.
    CheckOwner(v1::ObjectRef),
    Adopt(v1::ObjectRef),
    Release(v1::ObjectRef),
    /// Reads the ReplicaSet for a status write; with the number of conflicts so far.
    ReadForStatus(v1::ReplicaSetStatus, u8),
    /// Writes the status; with the number of conflicts so far.
    WriteStatus(v1::ReplicaSetStatus, u8),
}

/// The consequence of an answer.
#[derive(Clone, Debug)]
pub(super) enum Next {
    /// Another call.
    Call(Operation, Request),
    /// The operation continues from here as soon as possible.
    Begin(Operation),
    /// The outcome.
    Report(Kind),
}

// === impl Operation ===

impl Operation {
    /// The first call. `None` if the ReplicaSet is unknown, replaced, or without a template.
    pub(super) fn request(
        &self,
        owner: &v1::ObjectRef,
        generate_name: &str,
        set: Option<&ReplicaSet>,
        timeout: Duration,
    ) -> Option<Request> {
        let set = set.filter(|set| is_named(&set.projected, owner))?;
        Some(match self {
            Self::Create(name) => Request::CreatePod(CreatePod {
                namespace: owner.namespace.clone(),
                name: name.clone(),
                generate_name: generate_name.to_owned(),
                controller: controller(owner),
                template: set.template.clone()?,
                timeout,
            }),
            Self::ReadNamesake(name) => read_pod(owner, name),
            Self::Delete(victim) => Request::DeletePod {
                pod: victim.pod.clone()?,
                resource_version: Some(victim.resource_version.clone())
                    .filter(|version| !version.is_empty()),
            },
            Self::CheckOwner(_) | Self::ReadForStatus(..) => read_set(owner),
            Self::Adopt(pod) => adopt(owner, pod),
            Self::Release(pod) => Request::ReleasePod {
                pod: pod.clone(),
                owner_uid: owner.uid.clone(),
            },
            Self::WriteStatus(status, _) => write_status(owner, &set.projected, status),
        })
    }

    /// The consequence of the answer to the call.
    pub(super) fn answered(self, owner: &v1::ObjectRef, result: Result<Reply, ApiError>) -> Next {
        match (self, result) {
            (Self::Create(name), Err(error)) if error.reason == "AlreadyExists" => {
                let request = read_pod(owner, &name);
                Next::Call(Self::ReadNamesake(name), request)
            }
            (Self::ReadNamesake(_), result) => Next::Report(namesake(owner, result)),
            (Self::Delete(_), Err(error)) if error.code == Some(409) => {
                Next::Report(Kind::Failed(failure(FailureClass::Precondition, &error)))
            }
            (Self::CheckOwner(pod), Ok(Reply::ReplicaSet(set))) => {
                let it = &set.projected;
                if it.uid == owner.uid && it.deleted.is_none() {
                    Next::Call(Self::Adopt(pod.clone()), adopt(owner, &pod))
                } else {
                    owner_changed()
                }
            }
            (Self::CheckOwner(_), Err(error)) if error.code == Some(404) => owner_changed(),
            (Self::ReadForStatus(status, conflicts), Ok(Reply::ReplicaSet(set))) => {
                if set.projected.uid == owner.uid {
                    let request = write_status(owner, &set.projected, &status);
                    Next::Call(Self::WriteStatus(status, conflicts), request)
                } else {
                    Next::Report(Kind::Failed(failure(
                        FailureClass::Precondition,
                        &ApiError::default(),
                    )))
                }
            }
            (Self::WriteStatus(status, conflicts), Err(error))
                if error.code == Some(409) && conflicts < CONFLICTS_MAX =>
            {
                Next::Begin(Self::ReadForStatus(status, conflicts + 1))
            }
            (Self::Create(_), result)
            | (Self::Delete(_), result)
            | (Self::CheckOwner(_), result)
            | (Self::Adopt(_), result)
            | (Self::Release(_), result)
            | (Self::ReadForStatus(..), result)
            | (Self::WriteStatus(..), result) => Next::Report(reported(result)),
        }
    }
}

/// The outcome of a write.
fn reported(result: Result<Reply, ApiError>) -> Kind {
    match result {
        Ok(reply) => Kind::Done(done(reply)),
        Err(error) => Kind::Failed(failed(&error)),
    }
}

/// The outcome of a create whose name is taken: done if an earlier attempt has succeeded.
fn namesake(owner: &v1::ObjectRef, result: Result<Reply, ApiError>) -> Kind {
    match result {
        Ok(Reply::Pod(pod)) => {
            let controller = pod.controller.as_ref().map(|it| it.uid.as_str());
            if controller == Some(owner.uid.as_str()) && pod.deleted.is_none() {
                return Kind::Done(v1::Done {
                    already_existed: true,
                    ..done(Reply::Pod(pod))
                });
            }
            Kind::Failed(failure(FailureClass::NameTaken, &ApiError::default()))
        }
        Err(error) if error.code == Some(404) => {
            Kind::Failed(failure(FailureClass::NameTaken, &error))
        }
        Ok(_) | Err(_) => Kind::Failed(failure(FailureClass::Timeout, &ApiError::default())),
    }
}

fn done(reply: Reply) -> v1::Done {
    let (uid, resource_version, object) = match reply {
        Reply::Pod(pod) => {
            let (uid, version) = (pod.uid.clone(), pod.resource_version.clone());
            (uid, version, done::Object::Pod(*pod))
        }
        Reply::ReplicaSet(set) => {
            let set = set.projected;
            let (uid, version) = (set.uid.clone(), set.resource_version.clone());
            (uid, version, done::Object::ReplicaSet(set))
        }
        Reply::Gone(version) => (String::new(), version, done::Object::Gone(true)),
    };
    v1::Done {
        uid,
        resource_version,
        object: Some(object),
        already_existed: false,
    }
}

/// Classifies a refusal. The cluster may have executed a call that it reports as failed.
pub(super) fn failed(error: &ApiError) -> v1::Failed {
    let class = match error.code {
        None | Some(408 | 500..) => FailureClass::Timeout,
        Some(401 | 403) => FailureClass::Forbidden,
        Some(404) => FailureClass::NotFound,
        Some(409) => FailureClass::Conflict,
        Some(429) => FailureClass::Throttled,
        Some(_) => FailureClass::Invalid,
    };
    failure(class, error)
}

fn failure(class: FailureClass, error: &ApiError) -> v1::Failed {
    v1::Failed {
        class: class.into(),
        message: error.message.clone(),
        retry_after: None,
    }
}

fn owner_changed() -> Next {
    let failed = failure(FailureClass::OwnerChanged, &ApiError::default());
    Next::Report(Kind::Failed(failed))
}

fn adopt(owner: &v1::ObjectRef, pod: &v1::ObjectRef) -> Request {
    Request::AdoptPod {
        pod: pod.clone(),
        controller: controller(owner),
    }
}

fn read_pod(owner: &v1::ObjectRef, name: &str) -> Request {
    Request::ReadPod {
        namespace: owner.namespace.clone(),
        name: name.to_owned(),
    }
}

fn read_set(owner: &v1::ObjectRef) -> Request {
    Request::ReadReplicaSet {
        namespace: owner.namespace.clone(),
        name: owner.name.clone(),
    }
}

fn write_status(
    owner: &v1::ObjectRef,
    live: &v1::ReplicaSet,
    status: &v1::ReplicaSetStatus,
) -> Request {
    Request::WriteStatus(WriteStatus {
        replica_set: owner.clone(),
        resource_version: live.resource_version.clone(),
        status: status.clone(),
        selector: live.selector.clone(),
    })
}

fn controller(owner: &v1::ObjectRef) -> v1::OwnerReference {
    v1::OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        block_owner_deletion: Some(true),
    }
}

pub(super) fn is_named(set: &v1::ReplicaSet, owner: &v1::ObjectRef) -> bool {
    (&set.namespace, &set.name, &set.uid) == (&owner.namespace, &owner.name, &owner.uid)
}
