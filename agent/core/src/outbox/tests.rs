//! The waiting output, and its replacement by newer states.

use expect_test::expect_file;

use super::*;
use crate::tests::{part, play, sent};

fn pod(uid: &str, version: &str) -> v1::Pod {
    v1::Pod {
        name: uid.into(),
        uid: uid.into(),
        resource_version: version.into(),
        ..v1::Pod::default()
    }
}

/// A pod that fills a frame.
fn large(uid: &str, version: &str) -> v1::Pod {
    v1::Pod {
        node_name: "n".repeat(FRAME_BYTES_MAX),
        ..pod(uid, version)
    }
}

/// Nodes of which two fit into a frame; `-NAME` is gone.
fn nodes(words: &[&str]) -> BTreeMap<String, Option<v1::Node>> {
    let node = |word: &&str| match word.strip_prefix('-') {
        Some(gone) => (gone.to_owned(), None),
        None => {
            let node = v1::Node {
                name: (*word).to_owned(),
                labels: [("l".to_owned(), "l".repeat(FRAME_BYTES_MAX / 3))].into(),
                ..v1::Node::default()
            };
            (node.name.clone(), Some(node))
        }
    };
    let names = words.iter().filter(|it| **it != "complete");
    names.map(node).collect()
}

/// An outbox and the outcomes that wait.
type Output = (Outbox, VecDeque<v1::Outcome>);

/// Adds what a statement of the table says. Returns what it prints.
fn act(output: &mut Output, statement: &str) -> Option<String> {
    let (outbox, outcomes) = &mut *output;
    let words: Vec<_> = statement.split_whitespace().collect();
    let at = |place: usize| words.get(place).copied().unwrap_or_default();
    let (name, version) = at(1).split_once('@').unwrap_or_else(|| (at(1), ""));
    let mut event = |kind, uid: &str, event| outbox.push_event(kind, uid.into(), event);
    match at(0) {
        "waits" => *outbox = Outbox::new(name.parse().expect("it is a number")),
        "pod" => event(Kind::Pod, name, EventKind::PodApplied(pod(name, version))),
        "large" => event(Kind::Pod, name, EventKind::PodApplied(large(name, version))),
        "gone" => {
            let deleted = v1::Deleted {
                kind: v1::Kind::Pod.into(),
                object: Some(v1::ObjectRef {
                    uid: name.into(),
                    ..v1::ObjectRef::default()
                }),
                resource_version: version.into(),
            };
            event(Kind::Pod, name, EventKind::Deleted(deleted));
        }
        "bookmark" => {
            let bookmark = v1::Bookmark {
                kind: v1::Kind::Pod.into(),
                resource_version: name.into(),
            };
            event(Kind::Pod, "", EventKind::Bookmark(bookmark));
        }
        "nodes" => outbox.push_nodes(nodes(&words[1..]), words.contains(&"complete")),
        "set" => {
            let set = v1::ReplicaSet {
                uid: name.into(),
                resource_version: version.into(),
                ..v1::ReplicaSet::default()
            };
            event(Kind::ReplicaSet, name, EventKind::ReplicaSetApplied(set));
        }
        "made" => outcomes.push_back(v1::Outcome {
            outcome: Some(OutcomeKind::Done(v1::Done {
                object: Some(done::Object::Pod(pod(name, version))),
                ..v1::Done::default()
            })),
            ..v1::Outcome::default()
        }),
        part @ ("whole" | "first" | "middle" | "last") => {
            let items = match name {
                "sets" => Items::ReplicaSets(Vec::new()),
                _ => Items::Pods(words[2..].iter().map(|uid| pod(uid, "1")).collect()),
            };
            outbox.push_list(self::part(part), items, version.into());
        }
        "poll" => return Some(polled(output)),
        "all" => {
            let frames = std::iter::repeat_with(|| polled(output));
            let frames: Vec<_> = frames.take_while(|it| !it.starts_with("none")).collect();
            return Some(format!("{}; {}", frames.join(", "), polled(output)));
        }
        other => panic!("{other} is no statement"),
    }
    None
}

fn polled((outbox, outcomes): &mut Output) -> String {
    let has_frame = outbox.has_frame() || !outcomes.is_empty();
    let frame = outbox.poll_frame(outcomes);
    assert_eq!(has_frame, frame.is_some(), "{frame:?}");
    let Some(frame) = frame else {
        let waits = if outbox.is_empty() { "" } else { " now" };
        return format!("none{waits}");
    };
    let mut told = sent(&frame);
    if let Frame::Outcomes(outcomes) = &frame {
        for outcome in &outcomes.outcomes {
            if let Some(OutcomeKind::Done(v1::Done {
                object: Some(object),
                ..
            })) = &outcome.outcome
                && let done::Object::Pod(pod) = object
            {
                told.push(format!("with {}@{}", pod.uid, pod.resource_version));
            }
        }
    }
    told.join(" ")
}

/// `poll` prints the next frame, and `all` all of them; `none now` stands for an open list whose next page has not come. A `large` pod fills a
/// frame.
#[test]
fn output_waits_as_in_the_table() {
    play(&expect_file!["tests/outbox.txt"], Output::default, act);
}

#[test]
fn events_go_out_in_frames_of_a_bounded_size() {
    let mut outbox = Outbox::default();
    for index in 0..9 {
        let uid = format!("uid-{index}");
        let large = v1::Pod {
            node_name: "n".repeat(FRAME_BYTES_MAX / 4),
            ..pod(&uid, "1")
        };
        outbox.push_event(Kind::Pod, uid, EventKind::PodApplied(large));
    }
    let frames = std::iter::from_fn(|| outbox.poll_frame(&mut VecDeque::new()));
    let sizes = frames.filter_map(|frame| match frame {
        Frame::Events(events) => Some(events.events.len()),
        Frame::Hello(_)
        | Frame::Heartbeat(_)
        | Frame::Nodes(_)
        | Frame::Costs(_)
        | Frame::Outcomes(_)
        | Frame::SnapshotBegin(_)
        | Frame::SnapshotObjects(_)
        | Frame::SnapshotEnd(_) => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [3, 3, 3]);
}

#[test]
fn list_goes_out_in_frames_of_a_bounded_size_with_its_count() {
    let mut outbox = Outbox::default();
    let pods: Vec<_> = (0..5_000)
        .map(|index| v1::Pod {
            node_name: "n".repeat(100),
            ..pod(&format!("uid-{index}"), "1")
        })
        .collect();
    outbox.push_list(
        Part::WHOLE,
        Items::Pods(pods.into_iter().collect()),
        "7".into(),
    );
    let mut next_frame = || outbox.poll_frame(&mut VecDeque::new());
    assert!(matches!(next_frame(), Some(Frame::SnapshotBegin(_))));
    let mut count = 0;
    let end = loop {
        let frame = next_frame().expect("the list ends with an end");
        if let Frame::SnapshotEnd(end) = frame {
            break end;
        }
        let Frame::SnapshotObjects(objects) = frame else {
            panic!("{frame:?} within a list")
        };
        assert!(
            objects.encoded_len() <= FRAME_BYTES_MAX + 16 * 1024,
            "tags aside"
        );
        count += objects.pods.len();
    };
    assert_eq!(
        (count, end.count, end.resource_version.as_str()),
        (5_000, 5_000, "7")
    );
    assert!(outbox.is_empty());
}
