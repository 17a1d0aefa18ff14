//! The waiting output, and its replacement by newer states.

use super::*;

fn pod(uid: &str, version: &str) -> v1::Pod {
    v1::Pod {
        uid: uid.into(),
        resource_version: version.into(),
        ..v1::Pod::default()
    }
}

fn apply(outbox: &mut Outbox, uid: &str, version: &str) {
    outbox.push_event(
        Kind::Pod,
        uid.into(),
        EventKind::PodApplied(pod(uid, version)),
    );
}

fn done(pod: v1::Pod) -> v1::Outcome {
    v1::Outcome {
        outcome: Some(OutcomeKind::Done(v1::Done {
            object: Some(done::Object::Pod(pod)),
            ..v1::Done::default()
        })),
        ..v1::Outcome::default()
    }
}

fn bookmark(outbox: &mut Outbox, version: &str) {
    let bookmark = v1::Bookmark {
        kind: v1::Kind::Pod.into(),
        resource_version: version.into(),
    };
    outbox.push_event(Kind::Pod, String::new(), EventKind::Bookmark(bookmark));
}

fn delete(outbox: &mut Outbox, uid: &str, version: &str) {
    let object = v1::ObjectRef {
        uid: uid.into(),
        ..v1::ObjectRef::default()
    };
    let deleted = v1::Deleted {
        kind: v1::Kind::Pod.into(),
        object: Some(object),
        resource_version: version.into(),
    };
    outbox.push_event(Kind::Pod, uid.into(), EventKind::Deleted(deleted));
}

/// Returns what waits, a word for each event, and empties the outbox.
fn events(outbox: &mut Outbox) -> Vec<String> {
    let Some(Frame::Events(frame)) = outbox.poll_frame() else {
        return Vec::new();
    };
    let events = frame.events.into_iter().filter_map(|event| event.event);
    events
        .map(|event| match event {
            EventKind::PodApplied(pod) => format!("{}@{}", pod.uid, pod.resource_version),
            EventKind::Deleted(it) => format!(
                "-{}@{}",
                it.object.unwrap_or_default().uid,
                it.resource_version
            ),
            EventKind::Bookmark(it) => format!("b@{}", it.resource_version),
            EventKind::ReplicaSetApplied(set) => set.uid,
        })
        .collect()
}

#[test]
fn events_that_arrive_together_travel_together() {
    let mut outbox = Outbox::default();
    apply(&mut outbox, "a", "1");
    apply(&mut outbox, "b", "2");
    bookmark(&mut outbox, "3");
    assert_eq!(events(&mut outbox), ["a@1", "b@2", "b@3"]);
    assert!(outbox.is_empty());
}

#[test]
fn only_the_latest_event_of_an_object_waits() {
    let mut outbox = Outbox::default();
    apply(&mut outbox, "a", "1");
    apply(&mut outbox, "b", "2");
    apply(&mut outbox, "a", "3");
    delete(&mut outbox, "b", "4");
    assert_eq!(events(&mut outbox), ["a@3", "-b@4"]);
}

#[test]
fn same_name_with_a_new_uid_does_not_hide_the_deletion() {
    let mut outbox = Outbox::default();
    delete(&mut outbox, "old", "1");
    apply(&mut outbox, "new", "2");
    delete(&mut outbox, "new", "3");
    assert_eq!(events(&mut outbox), ["-old@1", "-new@3"]);
}

#[test]
fn bookmark_does_not_vouch_for_an_event_that_was_dropped() {
    let mut outbox = Outbox::default();
    apply(&mut outbox, "a", "1");
    bookmark(&mut outbox, "2");
    apply(&mut outbox, "a", "3");
    assert_eq!(events(&mut outbox), ["a@3"]);
    bookmark(&mut outbox, "4");
    bookmark(&mut outbox, "5");
    assert_eq!(events(&mut outbox), ["b@5"], "of bookmarks, the latest");
}

#[test]
fn object_that_was_sent_can_change_again() {
    let mut outbox = Outbox::default();
    let large = v1::Pod {
        node_name: "n".repeat(FRAME_BYTES_MAX),
        ..pod("a", "1")
    };
    outbox.push_event(Kind::Pod, "a".into(), EventKind::PodApplied(large));
    apply(&mut outbox, "b", "2");
    assert_eq!(events(&mut outbox), ["a@1"], "one frame holds no more");
    apply(&mut outbox, "a", "3");
    assert_eq!(events(&mut outbox), ["b@2", "a@3"]);
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
    let sizes: Vec<_> = (0..3).map(|_| events(&mut outbox).len()).collect();
    assert_eq!(sizes, [3, 3, 3]);
}

#[test]
fn outcome_carries_the_state_of_its_pod_that_waits() {
    let mut outbox = Outbox::default();
    let large = v1::Pod {
        node_name: "n".repeat(FRAME_BYTES_MAX),
        ..pod("other", "2")
    };
    apply(&mut outbox, "made", "1");
    outbox.push_event(Kind::Pod, "other".into(), EventKind::PodApplied(large));
    apply(&mut outbox, "made", "3");
    assert_eq!(events(&mut outbox), ["other@2"], "one frame holds no more");
    outbox.outcomes.push_back(done(pod("made", "1")));
    let Some(Frame::Outcomes(frame)) = outbox.poll_frame() else {
        panic!("outcomes go first");
    };
    assert_eq!(frame.outcomes, [done(pod("made", "3"))]);
    assert_eq!(events(&mut outbox), ["made@3"]);
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
        Part::Whole,
        Items::Pods(pods.into_iter().collect()),
        "7".into(),
    );
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    let mut count = 0;
    let end = loop {
        let frame = outbox.poll_frame().expect("the list ends with an end");
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

#[test]
fn events_keep_their_order_until_many_wait() {
    let mut outbox = Outbox::new(3);
    apply(&mut outbox, "a", "1");
    apply(&mut outbox, "b", "2");
    delete(&mut outbox, "a", "3");
    assert_eq!(events(&mut outbox), ["a@1", "b@2", "-a@3"]);
    for (uid, version) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("a", "5")] {
        apply(&mut outbox, uid, version);
    }
    assert_eq!(events(&mut outbox), ["a@1", "b@4", "a@5"]);
}

#[test]
fn object_with_several_events_is_known_by_the_latest_that_waits() {
    let mut outbox = Outbox::new(2);
    let large = "n".repeat(FRAME_BYTES_MAX);
    apply(&mut outbox, "a", "1");
    outbox.push_event(
        Kind::Pod,
        "a".into(),
        EventKind::PodApplied(v1::Pod {
            node_name: large,
            ..pod("a", "2")
        }),
    );
    assert_eq!(events(&mut outbox), ["a@1"]);
    outbox.outcomes.push_back(done(pod("a", "1")));
    let Some(Frame::Outcomes(outcomes)) = outbox.poll_frame() else {
        panic!("outcomes go first")
    };
    let Some(OutcomeKind::Done(done)) = &outcomes.outcomes[0].outcome else {
        panic!("{outcomes:?}")
    };
    assert!(matches!(&done.object, Some(done::Object::Pod(pod)) if pod.resource_version == "2"));
}

#[test]
fn pages_of_an_open_list_go_as_they_come_and_hold_nothing_else_up() {
    let page = |uid: &str| Items::Pods([pod(uid, "1")].into_iter().collect());
    let mut outbox = Outbox::default();
    outbox.push_list(Part::First, page("a"), "7".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotObjects(it)) if it.pods.len() == 1));
    assert!(!outbox.has_frame() && !outbox.is_empty());
    assert_eq!(outbox.poll_frame(), None);

    outbox.push_list(Part::Whole, Items::ReplicaSets(Vec::new()), "6".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    assert!(
        matches!(outbox.poll_frame(), Some(Frame::SnapshotEnd(end)) if end.resource_version == "6")
    );
    outbox.push_list(Part::Middle, page("b"), "7".into());
    outbox.push_list(Part::Last, page("c"), "7".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotObjects(it)) if it.pods.len() == 2));
    assert!(
        matches!(outbox.poll_frame(), Some(Frame::SnapshotEnd(end)) if end.count == 3 && end.resource_version == "7")
    );
    assert!(outbox.is_empty());
}

#[test]
fn list_that_begins_anew_forgets_the_pages_that_came() {
    let page = |uid: &str| Items::Pods([pod(uid, "1")].into_iter().collect());
    let mut outbox = Outbox::default();
    outbox.push_list(Part::First, page("a"), "7".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    outbox.push_list(Part::First, page("b"), "9".into());
    outbox.push_list(Part::Last, page("c"), "9".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotObjects(it)) if it.pods.len() == 2));
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotEnd(end)) if end.count == 2));
}

#[test]
fn empty_list_has_a_begin_and_an_end() {
    let mut outbox = Outbox::default();
    outbox.push_list(Part::Whole, Items::ReplicaSets(Vec::new()), "7".into());
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotEnd(end)) if end.count == 0));
    assert_eq!(outbox.poll_frame(), None);
}

#[test]
fn new_list_replaces_what_waits_of_its_kind_and_nothing_else() {
    let mut outbox = Outbox::default();
    outbox.push_list(
        Part::Whole,
        Items::Pods([pod("old", "1")].into_iter().collect()),
        "1".into(),
    );
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
    apply(&mut outbox, "a", "2");
    let set = v1::ReplicaSet {
        uid: "rs".into(),
        ..v1::ReplicaSet::default()
    };
    outbox.push_event(
        Kind::ReplicaSet,
        "rs".into(),
        EventKind::ReplicaSetApplied(set),
    );
    outbox.push_list(Part::Whole, Items::Pods(PackedPods::default()), "3".into());
    assert!(
        matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))),
        "it begins anew"
    );
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotEnd(end)) if end.count == 0));
    assert_eq!(events(&mut outbox), ["rs"]);
}

#[test]
fn outcomes_go_before_lists_and_events() {
    let mut outbox = Outbox::default();
    apply(&mut outbox, "a", "1");
    outbox.push_list(Part::Whole, Items::ReplicaSets(Vec::new()), "7".into());
    outbox.outcomes.push_back(v1::Outcome::default());
    assert!(matches!(outbox.poll_frame(), Some(Frame::Outcomes(_))));
    assert!(matches!(outbox.poll_frame(), Some(Frame::SnapshotBegin(_))));
}
