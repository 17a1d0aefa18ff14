//! Versions that grow, and that fall.

use super::*;
use crate::tests::pod_ref;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const CREATE: CallId = CallId(1);

fn history() -> History {
    History::new(Some(Duration::from_secs(30)), 7)
}

/// A history in which pods were shown up to version 100.
fn shown() -> History {
    let mut history = history();
    history.note_shown(Kind::Pod, Some(100));
    history
}

fn back(from: u64, to: u64) -> Result<(), WentBack> {
    Err(WentBack {
        kind: Kind::Pod,
        from,
        to,
    })
}

const POD: &str = "web-0";

fn named(pod: &str) -> PodName {
    ("default".to_owned(), pod.to_owned())
}

impl History {
    fn begin_create(&mut self, id: CallId, pod: &str, written: Option<u64>) {
        self.begin_write(id, Written::Pod(named(pod)), written);
    }
}

fn created(from: u64, to: u64) -> Option<(WentBack, bool)> {
    back(from, to).err().map(|went_back| (went_back, true))
}

#[test]
fn create_must_have_a_version_above_all_that_was_known_when_it_left() {
    for (version, expected) in [
        (Some("101"), None),
        (Some("100"), created(100, 100)),
        (Some("7"), created(100, 7)),
        (Some("x7"), None),
        (None, None),
    ] {
        let mut history = shown();
        history.begin_create(CREATE, POD, Some(90));
        history.note_shown(Kind::Pod, Some(300));
        assert_eq!(history.check_write(CREATE, version), expected);
        assert_eq!(history.check_write(CREATE, version), None, "once");
    }
}

#[test]
fn create_must_have_a_version_above_an_earlier_write() {
    let mut history = history();
    history.begin_create(CREATE, POD, Some(120));
    assert_eq!(history.check_write(CREATE, Some("120")), created(120, 120));
}

#[test]
fn create_without_an_answer_is_known_by_the_version_that_a_read_shows() {
    const READ: CallId = CallId(8);
    for (version, expected) in [("101", None), ("74", created(100, 74))] {
        let mut history = shown();
        history.begin_create(CREATE, POD, None);
        history.leave_open(CREATE);
        history.note_shown(Kind::Pod, Some(300));
        history.begin_read(READ, &named("web-1"));
        assert_eq!(history.check_write(READ, Some("7")), None, "another pod");
        history.begin_read(READ, &named(POD));
        assert_eq!(history.check_write(READ, Some(version)), expected);
    }
}

#[test]
fn create_without_an_answer_is_told_when_versions_are_forgotten_until_it_is_repeated() {
    const REPEATED: CallId = CallId(9);
    let pod = || v1::ObjectRef {
        uid: String::new(),
        ..pod_ref(POD)
    };
    let mut history = shown();
    history.begin_create(CREATE, POD, None);
    assert_eq!(history.leave_open(CREATE), None);
    history.begin_create(REPEATED, POD, None);
    assert_eq!(history.forget(), [(pod(), 100)]);
    assert_eq!(
        history.leave_open(REPEATED),
        Some((pod(), 100)),
        "it left before"
    );

    let mut history = shown();
    history.begin_create(CREATE, POD, None);
    history.leave_open(CREATE);
    history.begin_create(REPEATED, POD, None);
    assert_eq!(history.check_write(REPEATED, Some("101")), None);
    assert_eq!(history.forget(), []);
}

#[test]
fn status_may_keep_the_version_that_was_seen_and_have_no_lower_one() {
    for (version, went_back) in [("100", false), ("130", false), ("99", true)] {
        let mut history = history();
        history.note_shown(Kind::ReplicaSet, Some(1_000));
        history.begin_write(CREATE, Written::Status, Some(100));
        let told = history.check_write(CREATE, Some(version));
        let expected = WentBack {
            kind: Kind::ReplicaSet,
            from: 100,
            to: 99,
        };
        assert_eq!(told, went_back.then_some((expected, true)));
    }
}

#[test]
fn create_is_not_held_against_the_versions_of_another_kind() {
    let mut history = history();
    history.note_shown(Kind::ReplicaSet, Some(1_000));
    history.begin_create(CREATE, POD, None);
    assert_eq!(history.check_write(CREATE, Some("5")), None);
}

#[test]
fn list_must_have_reached_what_was_shown_when_it_was_asked_for() {
    let mut history = shown();
    history.begin_list(Kind::Pod, None);
    assert_eq!(history.check_list(Kind::Pod, "100"), Ok(()));
    history.note_shown(Kind::Pod, Some(150));
    assert_eq!(history.check_list(Kind::Pod, "120"), Ok(()), "a later page");
    history.begin_list(Kind::Pod, None);
    assert_eq!(history.check_list(Kind::Pod, "149"), back(150, 149));
}

#[test]
fn list_that_is_older_than_a_write_is_a_regression_when_it_comes_again_and_again() {
    let mut history = shown();
    let list = |history: &mut History, version| {
        history.begin_list(Kind::Pod, Some(200));
        history.check_list(Kind::Pod, version)
    };
    for _ in 1..OLDER_LISTS_MAX {
        assert_eq!(list(&mut history, "199"), Ok(()));
    }
    assert_eq!(list(&mut history, "200"), Ok(()), "one that has it");
    for _ in 1..OLDER_LISTS_MAX {
        assert_eq!(list(&mut history, "199"), Ok(()));
    }
    assert_eq!(list(&mut history, "199"), back(200, 199));
}

#[test]
fn newest_version_is_asked_for_while_the_kind_is_watched() {
    let mut history = shown();
    assert_eq!(history.poll_timeout(), None);
    history.set_watched(START, Kind::Pod, true);
    let due = history.poll_timeout().expect("it is asked for");
    let wait = due.duration_since(START);
    assert!((15..=30).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(history.poll_question(START, Kind::Pod, None), None);
    let id = history.poll_question(due, Kind::Pod, Some(110));
    let id = id.expect("it is due");
    assert_eq!(
        history.poll_question(due, Kind::Pod, None),
        None,
        "one only"
    );
    let older = VersionId(id.0 - 1);
    let answer = |version: &str| Ok(version.to_owned());
    let stale = history.check_version(due, Kind::Pod, older, &answer("1"));
    assert_eq!(stale, Ok(()));
    let told = history.check_version(due, Kind::Pod, id, &answer("109"));
    assert_eq!(told, back(110, 109));
    let next = history.poll_timeout().expect("it is asked for again");
    assert!(next > due);
    history.set_watched(due, Kind::Pod, false);
    assert_eq!(history.poll_timeout(), None);
}

#[test]
fn answer_is_held_against_what_was_known_when_it_was_asked_for() {
    let mut history = shown();
    history.set_watched(START, Kind::Pod, true);
    history.ask_now(START);
    let id = history.poll_question(START, Kind::Pod, None);
    let id = id.expect("it is due");
    history.note_shown(Kind::Pod, Some(500));
    let told = history.check_version(START, Kind::Pod, id, &Ok("100".to_owned()));
    assert_eq!(told, Ok(()));
}

#[test]
fn question_that_fails_is_asked_again_and_says_nothing() {
    let mut history = shown();
    history.set_watched(START, Kind::Pod, true);
    history.ask_now(START);
    let id = history.poll_question(START, Kind::Pod, None);
    let id = id.expect("it is due");
    let error = Err(ApiError::no_answer("reset"));
    assert_eq!(history.check_version(START, Kind::Pod, id, &error), Ok(()));
    assert!(history.poll_timeout() > Some(START));
}

#[test]
fn nothing_is_asked_without_an_interval() {
    let mut history = History::new(None, 7);
    history.set_watched(START, Kind::Pod, true);
    history.ask_now(START);
    assert_eq!(history.poll_timeout(), None);
    assert_eq!(history.poll_question(START, Kind::Pod, None), None);
}

#[test]
fn another_history_begins_with_nothing() {
    let mut history = shown();
    history.begin_create(CREATE, POD, None);
    history.begin_list(Kind::Pod, Some(200));
    history.forget();
    let told = history.check_write(CREATE, Some("1"));
    assert_eq!(told.map(|(_, is_news)| is_news), Some(false), "it is told");
    assert_eq!(history.check_list(Kind::Pod, "1"), Ok(()));
}

#[test]
fn regression_says_what_was_seen_and_what_it_means() {
    let went_back = back(1723, 208).expect_err("it is one");
    let said = "the resource versions of pods went back from 1723 to 208: the cluster was restored from a backup, or another cluster answers at its address";
    assert_eq!(went_back.to_string(), said);
}
