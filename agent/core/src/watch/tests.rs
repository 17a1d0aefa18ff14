//! List and watch: the requests, their order, and the retries after failures.

use super::*;
use crate::{
    pace::since,
    tests::{pod, pod_list, refusal},
};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn list(version: &str) -> Result<List, ApiError> {
    Ok(pod_list(Part::Whole, version, &[]))
}

fn list_id(command: Option<WatchCommand>) -> WatchId {
    let Some(WatchCommand::List(id)) = command else {
        panic!("{command:?} is no list")
    };
    id
}

fn watch_id(command: Option<WatchCommand>) -> (WatchId, String) {
    let Some(WatchCommand::Watch { id, from }) = command else {
        panic!("{command:?} is no watch")
    };
    (id, from)
}

fn applied(version: u64) -> WatchEvent {
    WatchEvent::Applied(pod("a", version).into())
}

/// A watch that has listed at version 10 and watches.
fn watching() -> (Watch, WatchId) {
    let mut watch = Watch::new(Kind::Pod, 1);
    watch.start();
    let id = list_id(watch.poll_command());
    assert!(watch.handle_listed(START, id, list("10"), None).is_some());
    let (id, from) = watch_id(watch.poll_command());
    assert_eq!(from, "10");
    (watch, id)
}

fn wait(watch: &mut Watch) -> Timestamp {
    let due = watch.poll_timeout().expect("it waits");
    assert_eq!(
        watch.poll_command(),
        None,
        "nothing is done before the time"
    );
    watch.handle_timeout(due);
    due
}

#[test]
fn server_that_asks_for_lists_without_end_gets_one_each_ten_seconds() {
    let mut watch = Watch::new(Kind::Pod, 1);
    let mut lists = Vec::new();
    for millisecond in 0..35_000 {
        let now = after(START, Duration::from_millis(millisecond));
        watch.request(now);
        match watch.poll_command() {
            Some(WatchCommand::List(id)) => {
                lists.push(millisecond);
                watch.handle_listed(now, id, list("10"), None);
            }
            Some(WatchCommand::Watch { .. }) | None => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(lists.len(), 5, "{lists:?}");
    assert!(lists[1] < 10, "one follows the first at once: {lists:?}");
    assert_eq!(lists[2..], [10_000, 20_000, 30_000]);
}

#[test]
fn list_that_is_due_later_leaves_the_watch_as_it_is() {
    let (mut watch, id) = watching();
    for _ in 0..ASKED_AT_ONCE {
        watch.request(START);
        let id = list_id(watch.poll_command());
        watch.handle_listed(START, id, list("10"), None);
        watch_id(watch.poll_command());
    }
    watch.request(START);
    assert_eq!(watch.poll_command(), None);
    let id = WatchId(id.0 + 2 * u64::from(ASKED_AT_ONCE));
    assert!(watch.handle_event(START, id, applied(11)).is_some());
    assert_eq!(wait(&mut watch), after(START, ASKED_EVERY));
    list_id(watch.poll_command());
    watch.request(START);
    watch.stop();
    assert_eq!(watch.poll_timeout(), None, "another session asks again");
}

#[test]
fn failing_list_is_tried_again_ever_later() {
    let mut watch = Watch::new(Kind::Pod, 1);
    watch.start();
    let mut now = START;
    let mut waits = Vec::new();
    for _ in 0..6 {
        let id = list_id(watch.poll_command());
        assert_eq!(
            watch.handle_listed(now, id, Err(refusal(503, "")), None),
            None
        );
        let due = wait(&mut watch);
        waits.push(due.duration_since(now));
        now = due;
    }
    assert!(waits.is_sorted(), "{waits:?}");
}

#[test]
fn news_of_an_older_command_are_ignored() {
    let (mut watch, old) = watching();
    watch.start();
    let id = list_id(watch.poll_command());
    assert_eq!(watch.handle_event(START, old, applied(11)), None);
    watch.handle_closed(START, old, None);
    assert!(watch.handle_listed(START, id, list("12"), None).is_some());
}

/// Answers the list that is due. Returns the number of the watch after it.
fn listed(watch: &mut Watch, now: Timestamp) -> WatchId {
    let id = list_id(watch.poll_command());
    assert!(watch.handle_listed(now, id, list("10"), None).is_some());
    watch_id(watch.poll_command()).0
}

#[test]
fn lists_after_410_come_ever_more_slowly_until_a_watch_runs() {
    let (mut watch, mut id) = watching();
    let mut now = START;
    let mut waits = Vec::new();
    for _ in 0..10 {
        watch.handle_closed(now, id, Some(&refusal(410, "Expired")));
        let due = wait(&mut watch);
        waits.push(since(due, now));
        now = due;
        id = listed(&mut watch, now);
    }
    assert!(
        waits[0] <= RETRY_MIN && waits[9] >= RETRY_MAX / 2,
        "{waits:?}"
    );
    now = after(now, RETRY_MAX);
    watch.handle_closed(now, id, Some(&refusal(410, "Expired")));
    assert!(since(wait(&mut watch), now) <= RETRY_MIN, "it ran");
}

#[test]
fn versions_that_are_always_gone_are_listed_anew_once_in_ten_seconds() {
    for error in [refusal(410, "Expired"), ApiError::unreadable("cut off")] {
        let (mut watch, mut id) = watching();
        let (mut now, mut lists) = (START, Vec::new());
        while now < after(START, Duration::from_secs(60)) {
            watch.handle_event(now, id, applied(11));
            watch.handle_event(now, id, WatchEvent::Error(error.clone()));
            now = wait(&mut watch);
            lists.push(now.duration_since(START).as_secs());
            id = listed(&mut watch, now);
        }
        assert_eq!(lists, [0, 0, 0, 10, 20, 30, 40, 50, 60], "{error:?}");
    }
}

#[test]
fn cluster_that_asks_to_wait_is_obeyed_for_up_to_a_minute() {
    let asks = |seconds| ApiError {
        retry_after_seconds: Some(seconds),
        ..refusal(429, "TooManyRequests")
    };
    for (asked, waited) in [(7, 7), (60, 60), (u32::MAX, 60)] {
        let due = after(START, Duration::from_secs(waited));
        let mut listing = Watch::new(Kind::Pod, 1);
        listing.start();
        let id = list_id(listing.poll_command());
        listing.handle_listed(START, id, Err(asks(asked)), None);
        assert_eq!(listing.poll_timeout(), Some(due));

        let (mut refused, id) = watching();
        refused.handle_closed(START, id, Some(&asks(asked)));
        assert_eq!(refused.poll_timeout(), Some(due));

        let (mut ended, id) = watching();
        ended.handle_event(START, id, WatchEvent::Error(asks(asked)));
        assert_eq!(ended.poll_timeout(), Some(due));
    }
}
