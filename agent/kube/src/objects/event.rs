//! The events that people see of creates and deletes.

use agent_core::recorder::Event;
use decree::v1;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Who says it: tools that look for the ReplicaSet controller's events find these.
const COMPONENT: &str = "replicaset-controller";

/// Writes an event whole.
pub(crate) fn event_to_json(event: &Event) -> Value {
    let Event {
        name,
        api_version,
        replica_set,
        reason,
        message,
        first,
        last,
        count,
        instance,
    } = event;
    let v1::ObjectRef {
        namespace,
        name: set,
        uid,
    } = replica_set;
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": name},
        "involvedObject": {
            "apiVersion": api_version, "kind": "ReplicaSet", "namespace": namespace, "name": set, "uid": uid,
        },
        "reason": reason.as_str(),
        "message": message,
        "source": {"component": COMPONENT},
        "firstTimestamp": seconds(*first),
        "lastTimestamp": seconds(*last),
        "count": count,
        "type": reason.event_type(),
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
    })
}

/// Returns the merge patch for an event that was written before.
pub(crate) fn event_patch(event: &Event) -> Value {
    json!({"count": event.count, "message": event.message, "lastTimestamp": seconds(event.last)})
}

/// Writes a time as Kubernetes does, to the second.
fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second());
    whole.unwrap_or(time).to_string()
}
