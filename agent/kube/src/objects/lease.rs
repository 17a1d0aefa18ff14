//! The Lease of the leader election.

use std::time::Duration;

use agent_core::lease::Record;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::projected::Unreadable;

const KIND: &str = "Lease";

#[derive(Deserialize)]
struct LeaseList {
    items: Vec<Value>,
}

/// Reads a Lease, and no other kind. A Lease without a holder is free to take. The record keeps the whole object for [`lease_to_json`].
pub(crate) fn lease(bytes: &[u8]) -> Result<Record, Unreadable> {
    let lease: Value = serde_json::from_slice(bytes)?;
    let found = lease.get("kind").and_then(Value::as_str);
    if found != Some(KIND) {
        return Err(Unreadable::Kind {
            found: found.unwrap_or_default().to_owned(),
            expected: KIND.to_owned(),
        });
    }
    Ok(record(&lease))
}

fn record(lease: &Value) -> Record {
    let text = |path| lease.pointer(path).and_then(Value::as_str);
    let number = |path| lease.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let time = |path| text(path)?.parse().ok();
    let seconds = number("/spec/leaseDurationSeconds").try_into();
    let version = text("/metadata/resourceVersion").unwrap_or_default();
    Record {
        holder: text("/spec/holderIdentity").unwrap_or_default().to_owned(),
        duration: Duration::from_secs(seconds.unwrap_or(0)),
        acquired: time("/spec/acquireTime"),
        renewed: time("/spec/renewTime"),
        transitions: number("/spec/leaseTransitions"),
        resource_version: version.to_owned(),
        object: lease.to_string().into_bytes(),
    }
}

/// Reads a list of Leases: their names and records. The items have no kind.
pub(crate) fn leases(bytes: &[u8]) -> Result<Vec<(String, Record)>, Unreadable> {
    let list: LeaseList = serde_json::from_slice(bytes)?;
    let leases = list.items.iter().map(|lease| {
        let name = lease.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.ok_or(Unreadable::List("names"))?;
        Ok((name.to_owned(), record(lease)))
    });
    leases.collect()
}

/// Writes a Lease: the object from which it was read, if any, with the fields of the record.
pub(crate) fn lease_to_json(
    namespace: &str,
    name: &str,
    record: &Record,
) -> Result<Value, Unreadable> {
    let mut lease = match record.object.as_slice() {
        [] => json!({"metadata": {"namespace": namespace, "name": name}}),
        object => serde_json::from_slice(object)?,
    };
    // The items of a list have no API version.
    lease["apiVersion"] = "coordination.k8s.io/v1".into();
    lease["kind"] = KIND.into();
    if !record.resource_version.is_empty() {
        lease["metadata"]["resourceVersion"] = record.resource_version.as_str().into();
    }
    let spec = &mut lease["spec"];
    spec["holderIdentity"] = record.holder.as_str().into();
    spec["leaseDurationSeconds"] = record.duration.as_secs().into();
    spec["acquireTime"] = record.acquired.map(micros).into();
    spec["renewTime"] = record.renewed.map(micros).into();
    spec["leaseTransitions"] = record.transitions.into();
    Ok(lease)
}

/// A time in Kubernetes' format, to the microsecond.
fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}
