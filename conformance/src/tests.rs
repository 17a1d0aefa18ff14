//! The checks of single frames and outcomes, on what a server refuses and what it accepts.

use std::collections::HashMap;

use decree_api::v1::{
    Done, LabelSelector, OwnerReference, Pod, ReplicaSet, ReplicaSetStatus, done::Object,
    outcome::Outcome,
};

use crate::{
    action::{made_pod, says_absent, shows_status},
    fields::check_fields,
    history::{check_form, check_number, unselected},
};

fn set() -> ReplicaSet {
    let labels = [("app".to_owned(), "web".to_owned())];
    ReplicaSet {
        name: "web".to_owned(),
        uid: "set-uid".to_owned(),
        selector: Some(LabelSelector {
            match_labels: labels.clone().into(),
            ..LabelSelector::default()
        }),
        template_labels: labels.into(),
        ..ReplicaSet::default()
    }
}

fn done(object: Object) -> [Outcome; 1] {
    [Outcome::Done(Done {
        object: Some(object),
        ..Done::default()
    })]
}

#[test]
fn only_frames_with_a_number_count() {
    let cases: [(&[u64], bool); 6] = [
        (&[1, 2, 3], true),
        (&[0, 0, 0], true),
        (&[1, 0, 2], true),
        (&[1, 0, 3], false),
        (&[2], false),
        (&[1, 1], false),
    ];
    for (numbers, is_right) in cases {
        let mut last = 0;
        let mut frames = numbers.iter();
        let fault = frames.find_map(|number| check_number(&mut last, *number));
        assert_eq!(fault.is_none(), is_right, "{numbers:?}");
    }
}

#[test]
fn version_is_a_decimal_number_or_empty() {
    for right in ["", "1", "18446744073709551615"] {
        assert_eq!(check_form(right), None);
    }
    for wrong in ["0", "01", "+1", "v1", "1.5", "18446744073709551616"] {
        assert!(check_form(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn fields_of_an_object_are_those_that_a_server_accepts() {
    let labels = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
    let long = "a".repeat(253);
    let right = [
        ["local", "web.a-1", "/tmp/a folder"],
        [&long[..63], &long[..253], &long[..128]],
    ];
    for object in right {
        let fault = check_fields(object, &labels("example.com/a_b", ""));
        assert_eq!(fault, None);
    }
    let wrong = [
        ["", "web", "u"],
        ["a.b", "web", "u"],
        ["Local", "web", "u"],
        [&long[..64], "web", "u"],
        ["local", "web_1", "u"],
        ["local", "-web", "u"],
        ["local", "web", ""],
        ["local", "web", "\u{e4}"],
        ["local", "web", &long[..129]],
    ];
    for object in wrong {
        let fault = check_fields(object, &labels("app", "web"));
        assert!(fault.is_some(), "{object:?}");
    }
    for (key, value) in [("", "a"), ("a/b/c", "a"), ("app", "a b"), ("app", "-a")] {
        let wrong = labels(key, value);
        let fault = check_fields(["local", "web", "u"], &wrong);
        assert!(fault.is_some(), "{wrong:?}");
    }
}

#[test]
fn selector_that_a_server_quarantines_is_a_fault() {
    let none = || std::iter::empty::<&Pod>();
    assert_eq!(unselected(&set(), none()), None);
    for selector in [None, Some(LabelSelector::default())] {
        let empty = ReplicaSet { selector, ..set() };
        assert!(unselected(&empty, none()).is_some(), "{empty:?}");
    }
    let mut other = set();
    other.template_labels.clear();
    assert!(unselected(&other, none()).is_some());
}

#[test]
fn controller_of_a_made_pod_has_kind_name_and_uid_of_its_replica_set() {
    for (kind, name, uid, is_right) in [
        ("ReplicaSet", "web", "set-uid", true),
        ("", "web", "set-uid", true),
        ("Job", "web", "set-uid", false),
        ("ReplicaSet", "other", "set-uid", false),
        ("ReplicaSet", "web", "other", false),
    ] {
        let controller = OwnerReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let pod = Pod {
            name: "web-bcdfg".to_owned(),
            controller: Some(controller),
            ..Pod::default()
        };
        let outcomes = done(Object::Pod(pod));
        let made = made_pod(&outcomes, "web-bcdfg", &set());
        assert_eq!(made.is_ok(), is_right, "{kind:?} {name} {uid}");
    }
}

#[test]
fn outcome_shows_the_whole_write() {
    let written = |replicas, observed_generation| {
        let status = ReplicaSetStatus {
            replicas,
            observed_generation,
            ..ReplicaSetStatus::default()
        };
        done(Object::ReplicaSet(ReplicaSet {
            status: Some(status),
            ..set()
        }))
    };
    assert!(shows_status(&written(2, 7), 2, 7));
    assert!(!shows_status(&written(2, 6), 2, 7));
    assert!(!shows_status(&written(3, 7), 2, 7));
    assert!(says_absent(&done(Object::Gone(true))));
    assert!(!says_absent(&done(Object::Pod(Pod::default()))));
}
