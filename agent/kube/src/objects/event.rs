//! Events for people.

use agent_core::recorder::Event;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The source of the events: tools that look for the ReplicaSet controller's events find these.
const COMPONENT: &str = "replicaset-controller";

pub(crate) fn event_to_json(event: &Event) -> Value {
    let (object, reason) = (&event.object, &event.reason);
    let involved = if reason.concerns_cluster() {
        json!({
            "apiVersion": "v1", "kind": "Namespace", "name": object.name, "uid": object.uid,
        })
    } else {
        json!({
            "apiVersion": event.api_version, "kind": "ReplicaSet", "namespace": object.namespace, "name": object.name, "uid": object.uid,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": event.namespace(), "name": event.name},
        "involvedObject": involved,
        "reason": reason.as_str(),
        "message": event.message,
        "source": {"component": COMPONENT},
        "firstTimestamp": seconds(event.first),
        "lastTimestamp": seconds(event.last),
        "count": event.count,
        "type": reason.event_type(),
        "reportingComponent": COMPONENT,
        "reportingInstance": event.instance,
    })
}

/// The merge patch for an event that exists already.
pub(crate) fn event_patch(event: &Event) -> Value {
    json!({"count": event.count, "message": event.message, "lastTimestamp": seconds(event.last)})
}

/// A time in Kubernetes' format, to the second.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second());
    whole.unwrap_or(time).to_string()
}
