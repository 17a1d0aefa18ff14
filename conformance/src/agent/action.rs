//! The actions that an agent is sent, and the expected outcomes.

use decree::v1::{
    Batch, Claim, Create, Delete, Guard, NotStartedCause, ObjectRef, Pod, ReplicaSet,
    ReplicaSetStatus, Victim, WriteStatus, batch::Action, done, outcome::Outcome,
};

use super::notes::Verdict;

pub(super) fn made_pod<'a>(
    outcomes: &'a [Outcome],
    name: &str,
    set: &ReplicaSet,
) -> Result<&'a Pod, String> {
    if let [Outcome::Done(done)] = outcomes
        && let Some(done::Object::Pod(pod)) = &done.object
        && pod.name == name
        && pod
            .controller
            .as_ref()
            .is_some_and(|owner| owner.uid == set.uid)
    {
        return Ok(pod);
    }
    Err(format!("{outcomes:?} in place of {name}"))
}

pub(super) fn again_pod(
    again: &[Outcome],
    made: &[Outcome],
    name: &str,
    set: &ReplicaSet,
) -> Verdict {
    let (again, made) = (made_pod(again, name, set)?, made_pod(made, name, set)?);
    if again.uid == made.uid {
        return Ok(());
    }
    Err(format!(
        "{name} was made twice, as {} and {}",
        made.uid, again.uid
    ))
}

pub(super) fn not_started(outcomes: &[Outcome]) -> Verdict {
    let is_guard = |one: &Outcome| matches!(one, Outcome::NotStarted(it) if it.cause() == NotStartedCause::Guard);
    if outcomes.iter().all(is_guard) {
        return Ok(());
    }
    Err(format!("{outcomes:?} in place of NOT_STARTED, cause GUARD"))
}

pub(super) fn not_done(outcomes: &[Outcome]) -> Verdict {
    let mut done = outcomes
        .iter()
        .filter(|one| matches!(one, Outcome::Done(_)));
    done.next().map_or(Ok(()), |done| Err(format!("{done:?}")))
}

pub(super) fn batch(set: &ReplicaSet, guard: Guard, action: Action) -> Batch {
    Batch {
        replica_set: Some(reference(set)),
        generation: set.generation,
        guard: Some(guard),
        action: Some(action),
        ..Batch::default()
    }
}

pub(super) fn create(names: &[String]) -> Action {
    let generate_name = names
        .first()
        .map_or("", |name| &name[..name.len() - 5])
        .to_owned();
    Action::Create(Create {
        names: names.to_vec(),
        generate_name,
        slow_start_initial: 1,
    })
}

pub(super) fn delete(pod: &Pod) -> Action {
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

pub(super) fn status(set: &ReplicaSet, replicas: i32) -> Action {
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
pub(super) fn adopt_absent(set: &ReplicaSet, pods: usize) -> Action {
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
pub(super) fn shows_gone(outcomes: &[Outcome], victim: &Pod) -> bool {
    let [Outcome::Done(done)] = outcomes else {
        return false;
    };
    match &done.object {
        Some(done::Object::Gone(gone)) => *gone,
        Some(done::Object::Pod(pod)) => pod.uid == victim.uid && pod.deleted.is_some(),
        Some(done::Object::ReplicaSet(_)) | None => false,
    }
}

pub(super) fn shows_replicas(outcomes: &[Outcome], replicas: i32) -> bool {
    let [Outcome::Done(done)] = outcomes else {
        return false;
    };
    let Some(done::Object::ReplicaSet(set)) = &done.object else {
        return false;
    };
    let status = set.status.as_ref();
    status.is_some_and(|status| status.replicas == replicas)
}

pub(super) fn reference(set: &ReplicaSet) -> ObjectRef {
    ObjectRef {
        namespace: set.namespace.clone(),
        name: set.name.clone(),
        uid: set.uid.clone(),
    }
}
