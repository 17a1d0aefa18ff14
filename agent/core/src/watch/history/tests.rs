//! Versions that grow, and that fall.

use super::*;
use crate::{
    api::ApiError,
    tests::{pod, pod_list, pod_ref, refusal, replied},
    watch::Part,
};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn history() -> History {
    History::new(Some(Duration::from_secs(30)), 7)
}

fn named(pod: &str) -> PodName {
    ("default".to_owned(), pod.to_owned())
}

fn no_answer() -> Answer {
    Err(ApiError::no_answer("reset"))
}

impl History {
    fn create(&mut self, pod: &str) {
        self.ask(Asked::Create(named(pod)), Some(100));
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
fn answer_must_have_reached_what_was_known_when_its_request_left() {
    let list = Asked::List(Kind::Pod);
    let newest = Asked::Newest(Kind::Pod, VersionId(1));
    for (asked, known, version, goes_back) in [
        (list.clone(), Some(100), "100", false),
        (list.clone(), Some(100), "99", true),
        (newest.clone(), Some(100), "100", false),
        (newest.clone(), Some(100), "99", true),
        (newest.clone(), None, "1", false),
        (newest, Some(100), "", false),
        (Asked::List(Kind::ReplicaSet), None, "1", false),
    ] {
        let mut history = history();
        history.ask(list.clone(), Some(100));
        history.ask(asked.clone(), known);
        let checked = history.check(&asked, version);
        assert_eq!(checked.is_err(), goes_back, "{asked:?} {version}");
        history.forget();
        assert_eq!(history.check(&asked, version), Ok(()));
    }
}

#[test]
fn created_pod_must_have_a_version_above_what_was_known() {
    for (version, goes_back) in [(101, false), (100, true), (7, true)] {
        let mut history = history();
        history.create("a");
        history.ask(Asked::Create(named("a")), Some(300));
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
    for (answers, in_doubt) in [
        (vec![], 1),
        (vec![no_answer()], 1),
        (vec![Err(refusal(403, ""))], 0),
        (vec![no_answer(), Err(refusal(403, ""))], 1),
        (vec![Err(refusal(409, "AlreadyExists"))], 0),
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
fn older_pod_that_has_the_name_tells_nothing() {
    let mut history = history();
    history.create("a");
    let taken = Err(refusal(409, "AlreadyExists"));
    for answer in [taken, replied(pod("a", 5))] {
        assert_eq!(history.check_create(&pod_ref("a"), &answer), Ok(()));
    }
}

#[test]
fn newest_versions_are_requested_in_a_session() {
    let mut history = history();
    assert_eq!(history.poll_timeout(), None);
    history.begin(START);
    for kind in Kind::ALL {
        let due = history.poll_timeout().expect("it is asked for");
        let wait = due.duration_since(START);
        assert!((15..=30).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(history.poll_question(START, kind, Some(100)), None);
        let later = after(START, Duration::from_secs(30));
        let id = history.poll_question(later, kind, Some(100));
        let asked = Asked::Newest(kind, id.expect("it is due"));
        assert!(history.check(&asked, "99").is_err());
        assert_eq!(history.poll_question(later, kind, None), None, "one only");
    }
    history.stop();
    assert_eq!(history.poll_timeout(), None);
    let mut history = History::new(None, 7);
    history.begin(START);
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
    use Part::{First, Last, Whole};
    for pages in [
        &[(Whole, "99", &[][..], true)][..],
        &[(Whole, "100", &["other"], false)],
        &[
            (Whole, "120", &["a", "other"], false),
            (Whole, "120", &["b"], true),
            (Whole, "120", &[], true),
        ],
        &[
            (First, "120", &["a"], true),
            // Begun anew.
            (First, "120", &["b"], true),
            (Last, "120", &["other"], false),
            (First, "120", &["a"], true),
            (Last, "120", &["other"], true),
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
    let list = pod_list(Whole, "120", &[other, pod("b", 1)]);
    assert!(!history.allow(&list), "a pod of the same name");
}

#[test]
fn pod_that_is_not_listed_is_read_and_is_in_doubt_until_it_is_gone() {
    let mut history = doubting();
    assert_eq!(history.next_read(1), None, "a list may show it");
    history.shows(Part::Whole, "120", &["b"]);
    let desired = Request::ReadPod {
        namespace: "default".into(),
        name: "a".into(),
    };
    assert_eq!(history.next_read(1), Some(desired));
    assert_eq!(history.next_read(2), None, "once");
    history.handle_read(CallId(1), &replied(pod("a", 12)));
    assert_eq!(history.doubts(), 1, "it is there");
    for (id, error) in [(2, refusal(503, "")), (3, refusal(404, "NotFound"))] {
        assert!(!history.shows(Part::Whole, "120", &[]));
        assert!(history.next_read(id).is_some());
        history.handle_read(CallId(id), &Err(error));
    }
    assert_eq!(history.doubts(), 0);
}

#[test]
fn unanswered_creates_are_bounded() {
    let mut history = history();
    history.ask(Asked::List(Kind::Pod), Some(100));
    for number in 0..2 * UNANSWERED_MAX {
        history.create(&format!("web-{number}"));
    }
    assert!(history.known.len() <= UNANSWERED_MAX);
    assert!(history.known.contains_key(&Asked::List(Kind::Pod)));
}

#[test]
fn regression_says_what_was_seen_and_what_it_means() {
    let went_back = WentBack {
        kind: Kind::Pod,
        from: 1723,
        to: 208,
    };
    let said = "the resource versions of pods went back from 1723 to 208: the cluster was restored from a backup, or another cluster answers at its address";
    assert_eq!(went_back.to_string(), said);
}
