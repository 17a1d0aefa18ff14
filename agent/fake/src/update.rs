//! Changing: patches, and statuses.

use serde_json::Value;

use crate::{
    commit, defaults,
    error::ApiError,
    kind::Kind,
    object::{self, Object},
    patch,
    state::State,
    store::ObjectKey,
    validate,
};

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Patches everything but the status, which is a separate subresource.
pub(crate) fn patch(
    state: &mut State,
    kind: Kind,
    key: &ObjectKey,
    change: &Value,
) -> Result<Object, ApiError> {
    let old = state.found(kind, key)?;
    let mut new = Value::clone(&old);
    patch::merge(&mut new, change);
    validate::shape(kind, &new)?;
    let version = object::text(&new, "resourceVersion");
    if version != object::text(&old, "resourceVersion") {
        return Err(ApiError::conflict(kind, key.name(), MODIFIED));
    }
    let metadata = object::metadata(&mut new);
    for field in ["generation", "deletionGracePeriodSeconds"] {
        match old["metadata"].get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.shift_remove(field),
        };
    }
    for field in ["kind", "apiVersion", "status"] {
        new[field] = old[field].clone();
    }
    defaults::apply(kind, &mut new);
    validate::object(kind, &new, Some(&old))?;
    if kind == Kind::ReplicaSet && new["spec"] != old["spec"] {
        object::bump_generation(&mut new);
    }
    Ok(store_update(state, kind, &old, new))
}

/// Replaces the status. UID and version are preconditions, if given.
pub(crate) fn replace_status(
    state: &mut State,
    kind: Kind,
    key: &ObjectKey,
    sent: &Value,
) -> Result<Object, ApiError> {
    validate::shape(kind, sent)?;
    let old = state.found(kind, key)?;
    let (uid, known) = (object::uid(sent), object::uid(&old));
    if !uid.is_empty() && uid != known {
        let why =
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {known}");
        return Err(ApiError::conflict(kind, key.name(), why));
    }
    let version = object::text(sent, "resourceVersion");
    if !version.is_empty() && version != object::text(&old, "resourceVersion") {
        return Err(ApiError::conflict(kind, key.name(), MODIFIED));
    }
    let mut new = Value::clone(&old);
    new["status"] = sent["status"].clone();
    if kind == Kind::ReplicaSet {
        validate::replica_set_status(&new)?;
        new["status"] = defaults::encode_replica_set_status(&sent["status"]);
    }
    Ok(store_update(state, kind, &old, new))
}

/// Stores a change. If only finalizers held the object, it goes with the last of them.
pub(crate) fn store_update(state: &mut State, kind: Kind, old: &Object, new: Value) -> Object {
    if object::is_released(kind, &new) && !object::is_released(kind, old) {
        return commit::remove_as(state, kind, new);
    }
    commit::change(state, kind, old, new)
}
