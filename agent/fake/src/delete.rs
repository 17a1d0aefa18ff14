//! Deletion: preconditions, grace periods, finalizers and the effect on dependents (spec 14.2).

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    commit, defaults,
    error::ApiError,
    kind::Kind,
    object::{self, FOREGROUND, ORPHAN, Object},
    state::State,
    store::ObjectKey,
};

/// The options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// A precondition: the uid.
    pub uid: Option<String>,
    /// A precondition: the resource version.
    pub resource_version: Option<String>,
    /// The effect on dependents.
    pub propagation: Propagation,
}

/// The effect of a deletion on the dependents of the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted before it.
    Foreground,
    /// They lose their reference to it, and stay.
    Orphan,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub struct Deletion {
    /// The object after the call: under deletion, or its last state.
    pub object: Object,
    /// Whether the object is gone already.
    pub gone: bool,
}

pub(crate) fn delete(
    state: &mut State,
    kind: Kind,
    key: &ObjectKey,
    options: &DeleteOptions,
) -> Result<Deletion, ApiError> {
    let object = state.found(kind, key)?;
    check_preconditions(kind, &object, options)?;
    let seconds = match kind {
        Kind::Pod => defaults::grace_seconds(&object),
        Kind::ReplicaSet | Kind::Namespace | Kind::ResourceQuota | Kind::Node => 0,
    };
    if object::is_deleting(&object) {
        let gone = false;
        return Ok(Deletion { object, gone });
    }
    let mut marked = Value::clone(&object);
    let grace = Duration::from_secs(seconds.into());
    object::mark_deleting(&mut marked, state.now(), grace);
    match options.propagation {
        Propagation::Foreground => object::add_finalizer(&mut marked, FOREGROUND),
        Propagation::Orphan => object::add_finalizer(&mut marked, ORPHAN),
        Propagation::Background => {}
    }
    if kind == Kind::Namespace {
        marked["status"] = json!({"phase": "Terminating"});
    }
    let must_wait =
        kind == Kind::Namespace || seconds > 0 || object::finalizers(&marked).next().is_some();
    let object = if must_wait {
        commit::change(state, kind, &object, marked)
    } else {
        commit::remove(state, kind, &object)
    };
    let gone = !must_wait;
    Ok(Deletion { object, gone })
}

/// Deletes an object for a controller of the cluster: ignores an object that is gone already.
pub(crate) fn delete_quietly(state: &mut State, kind: Kind, key: &ObjectKey) {
    let gone = delete(state, kind, key, &DeleteOptions::default());
    debug_assert!(gone.is_ok() || state.store.find(kind, key).is_none());
}

fn check_preconditions(
    kind: Kind,
    object: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let (uid, version) = (&options.uid, &options.resource_version);
    for (what, precondition, field, cause) in [
        ("UID", uid, "uid", "deleted and then recreated"),
        ("ResourceVersion", version, "resourceVersion", "modified"),
    ] {
        let found = object::text(object, field);
        if let Some(wanted) = precondition.as_deref().filter(|wanted| *wanted != found) {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {cause}"
            );
            return Err(ApiError::conflict(kind, object::name(object), why));
        }
    }
    Ok(())
}
