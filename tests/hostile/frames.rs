//! The frames of a session, from the words of a step.

use std::ops::Range;

use decree_api::v1::{self, event::Event, reconcile_request::Frame};
use tests::{bad_fields::BadFields, template::Template};

/// A Hello of the session of this number.
pub(crate) fn hello(template: &Template, number: u64) -> Frame {
    let text = |key: &str, other: &str| {
        let given = template.text(key, number);
        given.unwrap_or_else(|| other.to_owned())
    };
    let capabilities = template.value("capabilities", number).unwrap_or(0_u64);
    let name = text("text", "c");
    Frame::Hello(v1::Hello {
        protocol_min: template.value("min", number).unwrap_or(1),
        protocol_max: template.value("max", number).unwrap_or(1),
        capabilities: (0..capabilities).map(|at| format!("{name}-{at}")).collect(),
        agent_instance: text("instance", "hostile"),
        cluster_uid: text("cluster", &format!("hostile-{number}")),
        cluster_name: text("name", ""),
        shard: text("shard", ""),
        epoch: template.value("epoch", number).unwrap_or(0),
        mode: template.value("mode", number).unwrap_or(1),
        options: template.value("burst", number).map(|burst| v1::Options {
            burst_replicas: Some(burst),
            ..v1::Options::default()
        }),
        resumes_session_id: text("resumes", ""),
        platform: template.value("platform", number).unwrap_or(0),
    })
}

/// A frame with the objects, changes or outcomes of these numbers.
pub(crate) fn frame(
    verb: &str,
    of: &str,
    template: &Template,
    numbers: Range<u64>,
    version: u64,
) -> Frame {
    match verb {
        "pods" => Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: numbers.map(|at| template.pod(at)).collect(),
            replica_sets: Vec::new(),
        }),
        "sets" => Frame::SnapshotObjects(v1::SnapshotObjects {
            pods: Vec::new(),
            replica_sets: numbers.map(|at| template.replica_set(at)).collect(),
        }),
        "outcomes" => Frame::Outcomes(v1::Outcomes {
            outcomes: numbers.map(|at| outcome(template, at)).collect(),
        }),
        _ => {
            let event = |at| v1::Event {
                event: event(verb, of, template, at, version),
            };
            let events = numbers.map(event).collect();
            Frame::Events(v1::Events { events })
        }
    }
}

fn event(verb: &str, of: &str, template: &Template, at: u64, first: u64) -> Option<Event> {
    let version = template.text("version", at);
    Some(match verb {
        "pod-events" => Event::PodApplied(template.pod(at)),
        "set-events" => Event::ReplicaSetApplied(template.replica_set(at)),
        "deletes" => Event::Deleted(v1::Deleted {
            kind: kind(of),
            object: Some(template.reference(at)),
            resource_version: version.unwrap_or_else(|| "20".to_owned()),
        }),
        "bookmarks" => Event::Bookmark(v1::Bookmark {
            kind: kind(of),
            resource_version: version.unwrap_or_else(|| (first + at).to_string()),
        }),
        "no-events" => return None,
        verb => panic!("{verb} is no step"),
    })
}

/// A change for each object with a bad field.
pub(crate) fn bad_fields() -> Vec<Event> {
    let table = BadFields::read();
    let pods = table.pods.iter().map(|it| Event::PodApplied(it.pod()));
    let sets = table.nameless.iter().chain(&table.quarantined);
    let sets = sets.map(|it| Event::ReplicaSetApplied(it.replica_set()));
    pods.chain(sets).collect()
}

fn outcome(template: &Template, number: u64) -> v1::Outcome {
    let text = |key: &str| template.text(key, number).unwrap_or_default();
    let outcome = match text("as").as_str() {
        "failed" => Some(v1::outcome::Outcome::Failed(v1::Failed {
            failure_class: template.value("class", number).unwrap_or(4),
            message: text("message"),
            retry_after: None,
        })),
        "nothing" => None,
        _ => Some(v1::outcome::Outcome::Done(v1::Done {
            object: Some(v1::done::Object::Pod(template.pod(number))),
            ..v1::Done::default()
        })),
    };
    v1::Outcome {
        batch_id: template.value("batch", number).unwrap_or(number + 1),
        operation: template.value("operation", number).unwrap_or(0),
        outcome,
    }
}

pub(crate) fn kind(word: &str) -> i32 {
    match word {
        "pod" => v1::Kind::Pod.into(),
        "set" => v1::Kind::ReplicaSet.into(),
        number => number.parse().expect("a kind"),
    }
}
