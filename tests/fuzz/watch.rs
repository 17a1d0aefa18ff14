//! The bytes of a watch, in protobuf and in JSON.

use agent_core::{api::Kind, watch::WatchEvent};
use agent_kube::EventReader;
use jiff::Timestamp;
use serde_json::{Value, json};
use tests::{
    protobuf::{field, number},
    rng::Rng,
};

use crate::kubernetes;

/// The maximum ratio of an event's size to its bytes. The projection only omits fields, but a refusal adds a place and a reason.
const GROWTH_MAX: usize = 64;

/// Returns the bytes of some events.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let events = (0..rng.between(1, 5)).map(|_| {
        let verb = *rng.pick(&[
            "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "STRANGE",
        ]);
        let object = kubernetes::object(rng);
        let line = line(verb, &object);
        let Some(frame) = frame(verb, &object) else {
            return line;
        };
        let read = |bytes: &[u8]| events(Kind::Pod, [bytes].into_iter());
        assert_eq!(
            read(&line),
            read(&frame),
            "one object in two forms: {object}"
        );
        if rng.chance(500) { line } else { frame }
    });
    events.flatten().collect()
}

/// Reads a watch as a whole and in pieces.
pub(crate) fn check(bytes: &[u8]) {
    for kind in [Kind::Pod, Kind::ReplicaSet] {
        let whole = events(kind, [bytes].into_iter());
        for size in [1, 7, 1 + bytes.len() / 3] {
            assert_eq!(whole, events(kind, bytes.chunks(size)), "pieces of {size}");
        }
        let said: usize = whole.iter().map(|event| format!("{event:?}").len()).sum();
        let max = GROWTH_MAX * (bytes.len() + 64);
        assert!(said <= max, "{said} bytes of {}", bytes.len());
    }
}

fn events<'a>(kind: Kind, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<WatchEvent> {
    let mut reader = EventReader::new(kind);
    let mut events = Vec::new();
    for piece in pieces {
        reader.push(piece);
        loop {
            let chunk = reader.take_events();
            if chunk.is_empty() {
                break;
            }
            events.extend(chunk);
        }
    }
    events
}

fn line(verb: &str, object: &Value) -> Vec<u8> {
    format!("{}\n", json!({"type": verb, "object": object})).into_bytes()
}

/// Encodes an event of a pod like the protobuf of an API server. `None` for objects without this form: other kinds, and values of another type than
/// the field's.
fn frame(verb: &str, object: &Value) -> Option<Vec<u8>> {
    if object["kind"] != "Pod" || !["ADDED", "MODIFIED"].contains(&verb) {
        return None;
    }
    let pod = [
        field(1, &metadata(&object["metadata"])?),
        field(2, &spec(&object["spec"])?),
        field(3, &status(&object["status"])?),
    ];
    let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
    let unknown = [field(1, &kind), field(2, pod.concat())].concat();
    let document = [b"k8s\0".to_vec(), unknown].concat();
    let event = [field(1, verb.as_bytes()), field(2, field(1, &document))].concat();
    let length = u32::try_from(event.len()).ok()?.to_be_bytes();
    Some([length.to_vec(), event].concat())
}

fn metadata(metadata: &Value) -> Option<Vec<u8>> {
    let mut message = texts(
        metadata,
        &[
            (1, "name"),
            (3, "namespace"),
            (5, "uid"),
            (6, "resourceVersion"),
        ],
    )?;
    for (number, name) in [(8, "creationTimestamp"), (9, "deletionTimestamp")] {
        if let Some(text) = metadata[name].as_str() {
            message.extend(field(number, &time(text)?));
        }
    }
    for (number, name) in [(11, "labels"), (12, "annotations")] {
        for (key, value) in metadata[name].as_object().into_iter().flatten() {
            let entry = [
                field(1, key.as_bytes()),
                field(2, value.as_str()?.as_bytes()),
            ];
            message.extend(field(number, entry.concat()));
        }
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        let mut reference = texts(
            owner,
            &[(1, "kind"), (3, "name"), (4, "uid"), (5, "apiVersion")],
        )?;
        reference.extend(number(6, i64::from(owner["controller"].as_bool()?)));
        message.extend(field(13, &reference));
    }
    Some(message)
}

fn spec(spec: &Value) -> Option<Vec<u8>> {
    let mut message = texts(spec, &[(10, "nodeName")])?;
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        let container = texts(container, &[(1, "name"), (24, "restartPolicy")])?;
        message.extend(field(20, container));
    }
    Some(message)
}

fn status(status: &Value) -> Option<Vec<u8>> {
    let mut message = texts(status, &[(1, "phase"), (4, "reason")])?;
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let fields = [(1, "type"), (2, "status"), (5, "reason"), (6, "message")];
        let mut written = texts(condition, &fields)?;
        written.extend(field(4, &time(condition["lastTransitionTime"].as_str()?)?));
        message.extend(field(2, &written));
    }
    for (place, name) in [(8, "containerStatuses"), (10, "initContainerStatuses")] {
        for container in status[name].as_array().into_iter().flatten() {
            let mut written = texts(container, &[(1, "name")])?;
            if let Some(waiting) = container["state"].get("waiting") {
                let waiting = texts(waiting, &[(1, "reason")])?;
                written.extend(field(2, field(1, waiting)));
            }
            let restarts = i32::try_from(container["restartCount"].as_i64()?).ok()?;
            written.extend(number(5, restarts.into()));
            message.extend(field(place, &written));
        }
    }
    Some(message)
}

/// Encodes the fields of an object that are there.
fn texts(object: &Value, fields: &[(u32, &str)]) -> Option<Vec<u8>> {
    let written = fields.iter().filter_map(|(number, name)| {
        let value = object.get(name)?;
        Some(value.as_str().map(|text| field(*number, text)))
    });
    Some(written.collect::<Option<Vec<_>>>()?.concat())
}

fn time(text: &str) -> Option<Vec<u8>> {
    let seconds = text.parse::<Timestamp>().ok()?.as_second();
    Some(number(1, seconds))
}
