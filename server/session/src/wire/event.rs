//! Events and outcomes, from the contract to the core.

use decree_api::v1::{self, done, event, outcome};
use decree_core::{
    After, BatchId, Event, FailureClass, Kind, NotStarted, OperationResult, Outcome, Pod,
    ReplicaSet, Uid,
};

use super::{
    Fault, Rejected, Violation,
    field::{self, Faults},
    object,
};

/// The maximum size that is kept of the cluster's message about a failure; a status message of Kubernetes may have 32 KiB.
const MESSAGE_MAX: usize = 32 * 1024;

const KINDS: &str = "must be KIND_POD or KIND_REPLICA_SET";
const ONE: &str = "is absent; exactly one must be set";

/// Reads a kind.
///
/// # Errors
/// If it is not set or unknown.
pub fn kind(field: &str, kind: i32) -> Result<Kind, Violation> {
    match v1::Kind::try_from(kind) {
        Ok(v1::Kind::Pod) => Ok(Kind::Pod),
        Ok(v1::Kind::ReplicaSet) => Ok(Kind::ReplicaSet),
        Ok(v1::Kind::Unspecified) => Err(absent(field, &format!("is absent; {KINDS}"))),
        Err(_) => Err(Violation::new(
            field,
            Fault::Enum,
            format!("{kind} {KINDS}"),
        )),
    }
}

/// Reads an event, or the rejection of its object.
///
/// # Errors
/// If the event is not one of the contract's.
pub fn event(event: v1::Event) -> Result<Result<Event, Rejected>, Violation> {
    match event.event.ok_or_else(|| absent("event", ONE))? {
        event::Event::PodApplied(pod) => Ok(pod_applied(&pod)),
        event::Event::ReplicaSetApplied(set) => Ok(replica_set_applied(&set)),
        event::Event::Deleted(deleted) => self::deleted(&deleted),
        event::Event::Bookmark(bookmark) => self::bookmark(&bookmark).map(Ok),
    }
}

/// Reads a ReplicaSet as a member of a snapshot or a change.
pub(crate) fn replica_set_applied(set: &v1::ReplicaSet) -> Result<Event, Rejected> {
    replica_set(set).map(Box::new).map(Event::ReplicaSetApplied)
}

/// Reads a pod as a member of a snapshot or a change.
pub(crate) fn pod_applied(pod: &v1::Pod) -> Result<Event, Rejected> {
    self::pod(pod).map(Event::PodApplied)
}

fn pod(pod: &v1::Pod) -> Result<Pod, Rejected> {
    let names = [&*pod.namespace, &*pod.name, &*pod.uid];
    object::pod(pod).map_err(|violations| Rejected::new(v1::Kind::Pod, names, violations))
}

fn replica_set(set: &v1::ReplicaSet) -> Result<ReplicaSet, Rejected> {
    let names = [&*set.namespace, &*set.name, &*set.uid];
    let rejected = |violations| Rejected::new(v1::Kind::ReplicaSet, names, violations);
    object::replica_set(set).map_err(rejected)
}

/// Reads an outcome, and the rejection of its object, if there is one. A rejected object counts as not carried, and the core asks for a
/// list.
///
/// # Errors
/// If none of done, failed and not started is set.
pub fn outcome(outcome: v1::Outcome) -> Result<(Outcome, Option<Rejected>), Violation> {
    let (result, rejected) = match outcome.outcome.ok_or_else(|| absent("outcome", ONE))? {
        outcome::Outcome::Done(done) => self::done(&done),
        outcome::Outcome::Failed(failed) => (self::failed(failed), None),
        outcome::Outcome::NotStarted(cause) => {
            (OperationResult::NotStarted(not_started(cause)), None)
        }
    };
    let outcome = Outcome {
        batch: BatchId(outcome.batch_id),
        operation: outcome.operation,
        result,
    };
    Ok((outcome, rejected))
}

fn deleted(deleted: &v1::Deleted) -> Result<Result<Event, Rejected>, Violation> {
    let kind = kind("deleted.kind", deleted.kind)?;
    let object = deleted.object.as_ref();
    let object = object.ok_or_else(|| absent("deleted.object", "is absent"))?;
    let mut faults = Faults::default();
    let version = field::version("resource_version", &deleted.resource_version);
    let version = faults.keep(version);
    let identity = object::texts(&object.namespace, &object.name, &object.uid, &mut faults);
    let violations = faults.into_vec();
    let (Some((namespace, name, uid)), true) = (identity, violations.is_empty()) else {
        let names = [&*object.namespace, &*object.name, &*object.uid];
        return Ok(Err(Rejected::new(kind_out(kind), names, violations)));
    };
    Ok(Ok(match kind {
        Kind::ReplicaSet => {
            let key = object::key((namespace, name, uid));
            Event::ReplicaSetDeleted { key, version }
        }
        Kind::Pod => Event::PodDeleted {
            namespace: namespace.into(),
            name: name.into(),
            uid: Uid(uid.into()),
            version,
        },
    }))
}

fn bookmark(bookmark: &v1::Bookmark) -> Result<Event, Violation> {
    let kind = kind("bookmark.kind", bookmark.kind)?;
    let field = "bookmark.resource_version";
    let version = field::version(field, &bookmark.resource_version)?;
    let version = version.ok_or_else(|| absent(field, "is absent; must be the version reached"))?;
    Ok(Event::Bookmark { kind, version })
}

fn absent(field: &str, description: &str) -> Violation {
    Violation::new(field, Fault::Required, description)
}

fn done(done: &v1::Done) -> (OperationResult, Option<Rejected>) {
    let (version, unreadable) = match field::version("resource_version", &done.resource_version) {
        Ok(version) => (version, None),
        Err(fault) => {
            let names = ["", "", &done.uid];
            let rejected = Rejected::new(v1::Kind::Unspecified, names, vec![fault]);
            (None, Some(rejected))
        }
    };
    let (after, rejected) = match after(done.object.as_ref()) {
        Ok(after) => (after, unreadable),
        Err(rejected) => (None, Some(rejected)),
    };
    (OperationResult::Done { version, after }, rejected)
}

fn after(object: Option<&done::Object>) -> Result<Option<After>, Rejected> {
    Ok(match object {
        None | Some(done::Object::Gone(false)) => None,
        Some(done::Object::Gone(true)) => Some(After::Gone),
        Some(done::Object::Pod(pod)) => Some(After::Pod(Box::new(self::pod(pod)?))),
        Some(done::Object::ReplicaSet(set)) => Some(After::ReplicaSet(Box::new(replica_set(set)?))),
    })
}

fn failed(failed: v1::Failed) -> OperationResult {
    let class = class(failed.failure_class());
    let v1::Failed {
        failure_class: _,
        message,
        retry_after,
    } = failed;
    OperationResult::Failed {
        class,
        message: cut(message),
        retry_after: retry_after.as_ref().map(field::wait),
    }
}

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_MAX));
    message
}

namesakes! {
    fn class(v1::FailureClass) -> FailureClass {
        Unavailable NameTaken NotFound Precondition Forbidden Quota NamespaceTerminating Invalid Conflict Timeout Throttled
        OwnerChanged; Unspecified => Unavailable
    }
}

pub(crate) const fn kind_out(kind: Kind) -> v1::Kind {
    match kind {
        Kind::Pod => v1::Kind::Pod,
        Kind::ReplicaSet => v1::Kind::ReplicaSet,
    }
}

namesakes! {
    pub(crate) fn class_out(FailureClass) -> v1::FailureClass {
        Unavailable NameTaken NotFound Precondition Forbidden Quota NamespaceTerminating Invalid Conflict Timeout Throttled
        OwnerChanged
    }
}

/// An unknown cause counts as a guard that was not met: it says least about the cluster.
fn not_started(not_started: v1::NotStarted) -> NotStarted {
    match not_started.cause() {
        v1::NotStartedCause::Unspecified | v1::NotStartedCause::Guard => {
            NotStarted::Guard(cut(not_started.message))
        }
        v1::NotStartedCause::SlowStart => NotStarted::SlowStart,
        v1::NotStartedCause::NotEnforcing => NotStarted::NotEnforcing,
    }
}
