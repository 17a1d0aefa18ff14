//! The events of each shard: their order, and that none is missing.

mod cluster;

use decree::v1;

use super::*;
use crate::{
    api::{InvalidObject, Object},
    tests::pod_list,
    watch::{Items, Part},
};

const START: Timestamp = Timestamp::UNIX_EPOCH;
const TWO: NonZeroU16 = NonZeroU16::new(2).expect("it is not 0");

/// The shard of this number, and a namespace that it has.
fn shard(index: u16) -> (Shard, String) {
    let shard = Shard::new(index, TWO).expect("there are two");
    let names = (0_u8..).map(|number| format!("n{number}"));
    let own = names.into_iter().find(|name| shard.contains(name));
    (shard, own.expect("each has some"))
}

fn pod(namespace: &str, name: &str, version: u64) -> v1::Pod {
    v1::Pod {
        namespace: namespace.into(),
        name: name.into(),
        uid: format!("{namespace}/{name}"),
        resource_version: version.to_string(),
        ..v1::Pod::default()
    }
}

fn page(part: Part, version: &str, pods: &[v1::Pod]) -> Result<List, ApiError> {
    Ok(pod_list(part, version, pods))
}

fn applied(namespace: &str, name: &str, version: u64) -> WatchEvent {
    WatchEvent::Applied(Object::from(pod(namespace, name, version)))
}

fn names(list: &List) -> Vec<String> {
    let Items::Pods(pods) = &list.items else {
        panic!("{list:?} is no list of pods")
    };
    pods.iter().map(|pod| pod.name).collect()
}

/// Makes one list for all requests.
fn list(sharing: &mut Sharing, version: &str, pods: &[v1::Pod]) {
    assert!(sharing.begin_list(START), "a shard asks");
    sharing.handle_page(START, page(Part::Whole, version, pods));
}

/// Two shards that have listed at version 10, and a watch that is open.
fn watching() -> (Sharing, [QueueId; 2], WatchId) {
    let mut sharing = Sharing::new(Kind::Pod, TWO, 1);
    let queues = [0, 1].map(|index| sharing.join(shard(index).0));
    list(&mut sharing, "10", &[]);
    for id in queues {
        assert!(matches!(sharing.poll_page(id), Poll::Ready(Some(Ok(_)))));
        assert_eq!(sharing.subscribe(id, "10"), Poll::Pending);
    }
    let (watch, from) = sharing.poll_watch(START).expect("it is to open");
    assert_eq!(from, "10");
    sharing.handle_opened(watch);
    assert!(
        queues.map(|id| sharing.subscribe(id, "10")) == [Poll::Ready(Ok(())), Poll::Ready(Ok(()))]
    );
    (sharing, queues, watch)
}

fn events(sharing: &mut Sharing, id: QueueId) -> Vec<WatchEvent> {
    match sharing.poll_events(id) {
        Poll::Ready(Some(events)) => events,
        Poll::Pending => Vec::new(),
        Poll::Ready(None) => panic!("the watch has ended"),
    }
}

/// Asserts that a shard is told to list again, and nothing after that.
fn lists_anew(sharing: &mut Sharing, id: QueueId) -> Vec<WatchEvent> {
    let mut notified = events(sharing, id);
    let last = notified.pop().expect("it is notified");
    assert!(
        matches!(&last, WatchEvent::Error(error) if error.is_gone()),
        "{last:?}"
    );
    assert_eq!(sharing.poll_events(id), Poll::Ready(None));
    notified
}

#[test]
fn list_serves_who_asked_before_it_began() {
    let mut sharing = Sharing::new(Kind::Pod, TWO, 1);
    let [(one, of_one), (other, of_other)] = [0, 1].map(shard);
    let first = sharing.join(one);
    assert!(sharing.begin_list(START));
    let second = sharing.join(other);
    let pods = [pod(&of_one, "a", 3), pod(&of_other, "b", 4)];
    sharing.handle_page(START, page(Part::First, "7", &pods));
    sharing.handle_page(START, page(Part::Middle, "7", &pods[1..]));
    sharing.handle_page(START, page(Part::Last, "7", &[]));
    let Poll::Ready(Some(Ok(begun))) = sharing.poll_page(first) else {
        panic!("a page is there")
    };
    assert_eq!(
        (names(&begun), begun.part),
        (vec!["a".to_owned()], Part::First)
    );
    let Poll::Ready(Some(Ok(last))) = sharing.poll_page(first) else {
        panic!("the page between says nothing to it")
    };
    assert_eq!(
        (last.part, last.resource_version.as_str()),
        (Part::Last, "7")
    );
    assert_eq!(sharing.poll_page(first), Poll::Ready(None));
    assert_eq!(sharing.poll_page(second), Poll::Pending);
    list(&mut sharing, "8", &pods);
    let Poll::Ready(Some(Ok(whole))) = sharing.poll_page(second) else {
        panic!("the next list is for it")
    };
    assert_eq!(names(&whole), ["b"]);
}

#[test]
fn events_reach_the_shard_that_has_the_namespace() {
    let (mut sharing, queues, watch) = watching();
    let namespaces = [0, 1].map(|index| shard(index).1);
    let odd = |namespace: &str, version: &str| WatchEvent::Invalid {
        error: InvalidObject {
            object: format!("pod {namespace}/odd"),
            field: "metadata".into(),
            detail: "odd".into(),
        },
        resource_version: version.into(),
    };
    let chunk = vec![
        applied(&namespaces[0], "a", 11),
        WatchEvent::Deleted(Object::from(pod(&namespaces[1], "b", 12))),
        odd(&namespaces[1], "13"),
        odd("?", "14"),
        WatchEvent::Bookmark("15".into()),
    ];
    sharing.handle_events(START, watch, chunk.clone());
    let of = |queues: &[usize]| {
        queues
            .iter()
            .map(|at| chunk[*at].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(events(&mut sharing, queues[0]), of(&[0, 3, 4]));
    assert_eq!(events(&mut sharing, queues[1]), of(&[1, 2, 3, 4]));
    assert_eq!(sharing.position(), Some("15"));
    assert_eq!(sharing.poll_events(queues[0]), Poll::Pending);
}

#[test]
fn events_wait_for_a_shard_from_the_moment_its_list_begins() {
    let (mut sharing, queues, watch) = watching();
    let (one, namespace) = shard(0);
    let again = sharing.join(one);
    assert_eq!(
        sharing.poll_events(queues[0]),
        Poll::Ready(None),
        "its queue is void"
    );
    assert!(sharing.begin_list(START));
    sharing.handle_events(START, watch, vec![applied(&namespace, "a", 11)]);
    sharing.handle_page(START, page(Part::Whole, "11", &[pod(&namespace, "a", 11)]));
    sharing.handle_events(START, watch, vec![applied(&namespace, "b", 12)]);
    assert_eq!(sharing.subscribe(again, "11"), Poll::Ready(Ok(())));
    let expected = [applied(&namespace, "a", 11), applied(&namespace, "b", 12)];
    assert_eq!(
        events(&mut sharing, again),
        expected,
        "the first is older than the list"
    );
    sharing.leave(queues[0]);
    sharing.handle_events(START, watch, vec![applied(&namespace, "c", 13)]);
    let left = events(&mut sharing, again);
    assert_eq!(
        left.len(),
        1,
        "who leaves a queue that is void takes nothing from the next"
    );
}

#[test]
fn watch_that_ends_goes_on_where_it_was_and_shards_hear_of_errors_alone() {
    let (mut sharing, [one, other], watch) = watching();
    let namespace = shard(0).1;
    sharing.handle_events(START, watch, vec![applied(&namespace, "a", 11)]);
    sharing.handle_closed(START, watch, None);
    let due = sharing.watch_timeout().expect("it opens again");
    assert!(due > START && sharing.poll_watch(START).is_none());
    let (watch, from) = sharing.poll_watch(due).expect("it is due");
    assert_eq!(from, "11");
    assert_eq!(sharing.poll_events(other), Poll::Pending);

    let refusal = ApiError {
        code: Some(403),
        retry_after_seconds: Some(30),
        ..ApiError::default()
    };
    sharing.handle_closed(due, watch, Some(refusal.clone()));
    assert_eq!(
        events(&mut sharing, one).len(),
        1,
        "what came before comes first"
    );
    assert_eq!(sharing.poll_events(one), Poll::Ready(None));
    let refused = Poll::Ready(Err(refusal));
    assert_eq!(sharing.subscribe(one, "11"), refused);
    let later = sharing.watch_timeout().expect("it is tried again");
    assert_eq!(later, after(due, Duration::from_secs(30)));
    let (watch, _) = sharing.poll_watch(later).expect("it is due");
    sharing.handle_opened(watch);
    sharing.handle_events(later, watch, vec![applied(&namespace, "b", 12)]);
    assert_eq!(sharing.subscribe(one, "11"), Poll::Ready(Ok(())));
    assert_eq!(events(&mut sharing, one), [applied(&namespace, "b", 12)]);
    let Poll::Ready(Err(gone)) = sharing.subscribe(one, "11") else {
        panic!("an event after this version was taken")
    };
    assert!(gone.is_gone());
}

#[test]
fn version_that_is_gone_has_all_shards_list_anew_but_for_who_does() {
    let (mut sharing, queues, watch) = watching();
    let listing = sharing.join(shard(0).0);
    assert!(sharing.begin_list(START));
    let expired = WatchEvent::Error(gone("expired"));
    sharing.handle_events(START, watch, vec![expired]);
    assert_eq!(lists_anew(&mut sharing, queues[1]), []);
    assert!(!sharing.is_current(watch) && sharing.poll_watch(START).is_none());
    sharing.handle_page(START, page(Part::Whole, "20", &[]));
    assert!(matches!(
        sharing.poll_page(listing),
        Poll::Ready(Some(Ok(_)))
    ));
    let (watch, from) = sharing.poll_watch(START).expect("it begins after the list");
    assert_eq!(from, "20");
    sharing.handle_opened(watch);
    assert_eq!(sharing.subscribe(listing, "20"), Poll::Ready(Ok(())));
}

#[test]
fn shards_are_told_of_versions_that_went_back() {
    for by_list in [true, false] {
        let (mut sharing, queues, watch) = watching();
        sharing.handle_events(START, watch, vec![WatchEvent::Bookmark("30".into())]);
        if by_list {
            sharing.join(shard(0).0);
            list(&mut sharing, "12", &[]);
        } else {
            let before = sharing.position().map(str::to_owned);
            sharing.check_version(before.as_deref(), "31");
            assert!(sharing.is_current(watch), "it is newer");
            sharing.check_version(before.as_deref(), "12");
        }
        let notified = lists_anew(&mut sharing, queues[1]);
        assert_eq!(notified, [WatchEvent::Elsewhere("30".into())]);
        let expected = by_list.then_some("12");
        assert_eq!(sharing.position(), expected);
    }
}

#[test]
fn shard_that_falls_behind_lists_anew_and_stops_no_other() {
    let (mut sharing, [slow, other], watch) = watching();
    sharing.events_max = 100;
    let namespaces = [0, 1].map(|index| shard(index).1);
    for version in 11..=200 {
        let mut chunk = vec![applied(&namespaces[0], "a", version)];
        if version % 50 == 0 {
            chunk.push(applied(&namespaces[1], "b", version));
        }
        sharing.handle_events(START, watch, chunk);
    }
    lists_anew(&mut sharing, slow);
    assert_eq!(events(&mut sharing, other).len(), 4);
    assert!(sharing.is_current(watch));
    sharing.leave(other);
    assert!(!sharing.is_current(watch), "no one wants it any longer");
}

#[test]
fn list_that_fails_says_so_and_is_not_made_again_at_once() {
    let mut sharing = Sharing::new(Kind::Pod, TWO, 1);
    let one = sharing.join(shard(0).0);
    assert!(sharing.begin_list(START));
    let away = ApiError::no_answer("away");
    sharing.handle_page(START, Err(away.clone()));
    assert_eq!(sharing.poll_page(one), Poll::Ready(Some(Err(away))));
    assert_eq!(sharing.poll_page(one), Poll::Ready(None));
    sharing.join(shard(0).0);
    let due = sharing.list_timeout().expect("it is tried again");
    assert!(due > START && !sharing.begin_list(START) && sharing.begin_list(due));
}
