//! Events for people.

use agent_core::recorder::Event;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The source of the events: tools that look for the ReplicaSet controller's events find these.
const COMPONENT: &str = "replicaset-controller";

pub(crate) fn event_to_json(event: &Event) -> Value {
    let Event {
        name,
        api_version,
        object,
        reason,
        message,
        first,
        last,
        count,
        instance,
    } = event;
    let involved = if reason.concerns_cluster() {
        json!({
            "apiVersion": "v1", "kind": "Namespace", "name": object.name, "uid": object.uid,
        })
    } else {
        json!({
            "apiVersion": api_version, "kind": "ReplicaSet", "namespace": object.namespace, "name": object.name, "uid": object.uid,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": event.namespace(), "name": name},
        "involvedObject": involved,
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

/// The merge patch for an event that exists already.
pub(crate) fn event_patch(event: &Event) -> Value {
    json!({"count": event.count, "message": event.message, "lastTimestamp": seconds(event.last)})
}

/// A time in Kubernetes' format, to the second.
fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second());
    whole.unwrap_or(time).to_string()
}
