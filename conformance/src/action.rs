//! The actions that an agent is sent, and the expected outcomes.

use decree_api::v1::{
    Batch, Claim, Create, Delete, Guard, NotStartedCause, ObjectRef, OwnerReference, Pod,
    ReplicaSet, ReplicaSetStatus, Victim, WriteStatus, batch::Action, done::Object,
    outcome::Outcome,
};

use crate::{history::owns, score::Verdict};

/// The object of the only outcome, if the operation was done.
fn object(outcomes: &[Outcome]) -> Option<&Object> {
    match outcomes {
        [Outcome::Done(done)] => done.object.as_ref(),
        _ => None,
    }
}

pub(crate) fn made_pod<'a>(
    outcomes: &'a [Outcome],
    name: &str,
    set: &ReplicaSet,
) -> Result<&'a Pod, String> {
    let is_owner = |owner: &OwnerReference| owns(set, owner);
    match object(outcomes) {
        Some(Object::Pod(pod))
            if pod.name == name && pod.controller.as_ref().is_some_and(is_owner) =>
        {
            Ok(pod)
        }
        _ => Err(format!("{outcomes:?} in place of {name}")),
    }
}

pub(crate) fn again_pod(
    again: &[Outcome],
    made: &[Outcome],
    name: &str,
    set: &ReplicaSet,
) -> Verdict {
    let (again, made) = (made_pod(again, name, set)?, made_pod(made, name, set)?);
    if again.uid == made.uid {
        return Ok(());
    }
    let (first, second) = (&made.uid, &again.uid);
    Err(format!("{name} was made twice, as {first} and {second}"))
}

pub(crate) fn not_started(outcomes: &[Outcome]) -> Verdict {
    let is_guard = |one: &Outcome| matches!(one, Outcome::NotStarted(it) if it.cause() == NotStartedCause::Guard);
    if outcomes.iter().all(is_guard) {
        return Ok(());
    }
    Err(format!("{outcomes:?} in place of NOT_STARTED, cause GUARD"))
}

pub(crate) fn not_done(outcomes: &[Outcome]) -> Verdict {
    let done = outcomes.iter().find(|one| matches!(one, Outcome::Done(_)));
    done.map_or(Ok(()), |done| Err(format!("{done:?}")))
}

pub(crate) fn batch(set: &ReplicaSet, guard: Guard, action: Action) -> Batch {
    Batch {
        replica_set: Some(reference(set)),
        generation: set.generation,
        guard: Some(guard),
        action: Some(action),
        ..Batch::default()
    }
}

pub(crate) fn create(names: &[String]) -> Action {
    let base = names.first().map_or("", |name| &name[..name.len() - 5]);
    Action::Create(Create {
        names: names.to_vec(),
        generate_name: base.to_owned(),
        slow_start_initial: 1,
    })
}

pub(crate) fn delete(pod: &Pod) -> Action {
    let pod = ObjectRef {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    };
    Action::Delete(Delete {
        victims: vec![Victim {
            pod: Some(pod),
            ..Victim::default()
        }],
    })
}

pub(crate) fn status(set: &ReplicaSet, replicas: i32) -> Action {
    let status = ReplicaSetStatus {
        replicas,
        observed_generation: set.generation,
        ..ReplicaSetStatus::default()
    };
    Action::WriteStatus(WriteStatus {
        status: Some(status),
    })
}

/// Adoptions of pods that do not exist.
pub(crate) fn adopt_absent(set: &ReplicaSet, pods: usize) -> Action {
    let absent = |number| ObjectRef {
        name: format!("{}-absent-{number}", set.name),
        uid: format!("absent-{number}"),
        ..reference(set)
    };
    Action::Claim(Claim {
        adopts: (0..pods).map(absent).collect(),
        ..Claim::default()
    })
}

/// Whether the outcome of a deletion shows that the pod is deleted or terminating.
pub(crate) fn shows_gone(outcomes: &[Outcome], victim: &Pod) -> bool {
    match object(outcomes) {
        Some(Object::Gone(gone)) => *gone,
        Some(Object::Pod(pod)) => pod.uid == victim.uid && pod.deletion_timestamp.is_some(),
        Some(Object::ReplicaSet(_)) | None => false,
    }
}

/// Whether the outcome of a deletion says that there is no such pod.
pub(crate) fn says_absent(outcomes: &[Outcome]) -> bool {
    matches!(object(outcomes), Some(Object::Gone(true)))
}

pub(crate) fn shows_status(outcomes: &[Outcome], replicas: i32, generation: i64) -> bool {
    let Some(Object::ReplicaSet(set)) = object(outcomes) else {
        return false;
    };
    let status = set.status.as_ref();
    status.is_some_and(|it| (it.replicas, it.observed_generation) == (replicas, generation))
}

pub(crate) fn reference(set: &ReplicaSet) -> ObjectRef {
    ObjectRef {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
    }
}
