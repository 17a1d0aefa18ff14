//! Versions that grow, and that fall.

use super::*;
use crate::{
    api::ApiError,
    tests::{part, pod, pod_list, pod_ref, refusal, replied},
    watch::Part,
};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn history() -> History {
    History::new(7)
}

fn named(pod: &str) -> PodName {
    ("default".to_owned(), pod.to_owned())
}

fn no_answer() -> Answer {
    Err(ApiError::no_answer("reset"))
}

impl History {
    fn create(&mut self, pod: &str) {
        self.note_create(named(pod), Some(100));
    }

    fn next_read(&mut self, id: u64) -> Option<Request> {
        self.poll_read(|| CallId(id)).map(|call| call.request)
    }

    fn shows(&mut self, part: Part, version: &str, names: &[&str]) -> bool {
        let pods: Vec<_> = names.iter().map(|name| pod(name, 1)).collect();
        self.allow(&pod_list(part, version, &pods))
    }
}

#[test]
fn created_pod_must_have_a_version_above_what_was_known() {
    for (version, goes_back) in [(101, false), (100, true), (7, true)] {
        let mut history = history();
        history.create("a");
        history.note_create(named("a"), Some(300));
        let checked = history.check_create(&pod_ref("a"), &replied(pod("a", version)));
        let went_back = WentBack {
            kind: Kind::Pod,
            from: 100,
            to: version,
        };
        let expected = if goes_back { Err(went_back) } else { Ok(()) };
        assert_eq!(checked, expected);
        assert_eq!(history.doubts(), usize::from(goes_back));
    }
}

#[test]
fn creates_that_may_have_taken_effect_are_in_doubt() {
    let taken = || Err(refusal(409, "AlreadyExists"));
    for (answers, in_doubt) in [
        (vec![], 1),
        (vec![no_answer()], 1),
        (vec![Err(refusal(403, ""))], 0),
        (vec![no_answer(), Err(refusal(403, ""))], 1),
        (vec![taken()], 0),
        // The older pod that has the name tells nothing.
        (vec![taken(), replied(pod("a", 5))], 0),
        (vec![replied(pod("a", 101))], 0),
        (vec![no_answer(), replied(pod("a", 101))], 0),
    ] {
        let mut history = history();
        history.create("a");
        for answer in &answers {
            assert_eq!(history.check_create(&pod_ref("a"), answer), Ok(()));
        }
        history.forget();
        assert_eq!(history.doubts(), in_doubt, "{answers:?}");
    }
}

#[test]
fn newest_versions_are_requested_one_at_a_time_in_a_session() {
    let mut history = history();
    assert_eq!(history.poll_timeout(), None);
    history.begin(START);
    let due = history.poll_timeout().expect("it is asked for");
    let wait = due.duration_since(START);
    assert!((15..=30).contains(&wait.as_secs()), "{wait:?}");
    let asked = [0, 30, 90, 120].map(|seconds| {
        let now = after(START, Duration::from_secs(seconds));
        if seconds == 120 {
            assert_eq!(history.handle_newest(Kind::Pod, "100"), Ok(()));
        }
        history.poll_question(now, Kind::Pod, Some(100))
    });
    assert_eq!(asked, [false, true, false, true]);
    history.stop();
    assert_eq!(history.poll_timeout(), None);
}

/// Two pods in doubt, in a cluster that had reached version 100.
fn doubting() -> History {
    let mut history = history();
    for name in ["a", "b"] {
        history.create(name);
        let checked = history.check_create(&pod_ref(name), &replied(pod(name, 12)));
        checked.expect_err("it went back");
    }
    history.forget();
    history
}

#[test]
fn list_of_the_lost_history_is_used_only_if_it_shows_the_pods_in_doubt() {
    let whole = Part::WHOLE;
    let (first, last) = (part("first"), part("last"));
    for pages in [
        &[(whole, "99", &[][..], true)][..],
        &[(whole, "100", &["other"], false)],
        &[
            (whole, "120", &["a", "other"], false),
            (whole, "120", &["b"], true),
            (whole, "120", &[], true),
        ],
        &[
            (first, "120", &["a"], true),
            // Begun anew.
            (first, "120", &["b"], true),
            (last, "120", &["other"], false),
            (first, "120", &["a"], true),
            (last, "120", &["other"], true),
        ],
    ] {
        let mut history = doubting();
        for (part, version, names, is_used) in pages {
            let used = history.shows(*part, version, names);
            assert_eq!(used, *is_used, "{names:?} of {pages:?}");
        }
    }
    let mut history = doubting();
    let other = v1::Pod {
        uid: "another".into(),
        ..pod("a", 1)
    };
    let list = pod_list(whole, "120", &[other, pod("b", 1)]);
    assert!(!history.allow(&list), "a pod of the same name");
}

#[test]
fn pod_that_is_not_listed_is_read_and_is_in_doubt_until_it_is_gone() {
    let mut history = doubting();
    assert_eq!(history.next_read(1), None, "a list may show it");
    history.shows(Part::WHOLE, "120", &["b"]);
    let desired = Request::ReadPod {
        namespace: "default".into(),
        name: "a".into(),
    };
    assert_eq!(history.next_read(1), Some(desired));
    assert_eq!(history.next_read(2), None, "once");
    history.handle_read(CallId(1), &replied(pod("a", 12)));
    assert_eq!(history.doubts(), 1, "it is there");
    for (id, error) in [(2, refusal(503, "")), (3, refusal(404, "NotFound"))] {
        assert!(!history.shows(Part::WHOLE, "120", &[]));
        assert!(history.next_read(id).is_some());
        history.handle_read(CallId(id), &Err(error));
    }
    assert_eq!(history.doubts(), 0);
}

#[test]
fn unanswered_creates_are_bounded() {
    let mut history = history();
    for number in 0..2 * UNANSWERED_MAX {
        history.create(&format!("web-{number}"));
    }
    assert!(history.creates.len() <= UNANSWERED_MAX);
}
