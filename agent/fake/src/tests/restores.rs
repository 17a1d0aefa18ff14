//! A store that is restored from a backup.

use std::collections::BTreeSet;

use super::{Story, cluster, pod, refusal};
use crate::{Cluster, EventKind, Kind, OpenWatches, WatchPoll};

const WAYS: [OpenWatches; 3] = [
    OpenWatches::Closed,
    OpenWatches::Silent,
    OpenWatches::Expired,
];

/// A cluster with the pods `a` and `b`, where `b` came after the backup, and the backup.
fn with_backup() -> (Cluster, Cluster) {
    let mut cluster = cluster();
    cluster.created(pod("a"));
    let backup = cluster.clone();
    cluster.created(pod("b"));
    cluster.settle();
    (cluster, backup)
}

fn uid(cluster: &Cluster, name: &str) -> String {
    let pod = cluster.pod(name).expect("it is there");
    pod["metadata"]["uid"].as_str().unwrap_or_default().into()
}

#[test]
fn objects_and_versions_are_those_of_the_backup_and_time_goes_on() {
    for open in WAYS {
        let (mut cluster, backup) = with_backup();
        let now = cluster.now();
        cluster.put_back(&backup, open);
        assert_eq!(cluster.version(), backup.version());
        assert!(cluster.pod("a").is_some() && cluster.pod("b").is_none());
        assert_eq!(cluster.now(), now);
    }
}

#[test]
fn what_was_due_at_the_backup_is_due_again() {
    let (mut cluster, backup) = with_backup();
    cluster.put_back(&backup, OpenWatches::Closed);
    let phase = |cluster: &Cluster| cluster.pod("a").map(|pod| pod["status"]["phase"].clone());
    assert_eq!(phase(&cluster), Some("Pending".into()));
    cluster.settle();
    assert_eq!(phase(&cluster), Some("Running".into()));
}

#[test]
fn no_uid_is_given_twice() {
    let (mut cluster, backup) = with_backup();
    let mut uids = BTreeSet::from([uid(&cluster, "b")]);
    for _ in 0..3 {
        cluster.put_back(&backup, OpenWatches::Closed);
        cluster.created(pod("b"));
        assert!(uids.insert(uid(&cluster, "b")));
    }
}

#[test]
fn closed_watches_end_and_the_future_is_refused() {
    let (mut cluster, backup) = with_backup();
    let reached = cluster.version();
    let watch = cluster.watch(Kind::Pod, reached).expect("it is the newest");
    cluster.put_back(&backup, OpenWatches::Closed);
    assert_eq!(cluster.poll_watch(watch), WatchPoll::Closed);
    assert_eq!(refusal(cluster.watch(Kind::Pod, reached)).0, 504);
}

#[test]
fn expired_watches_say_so_and_end() {
    let (mut cluster, backup) = with_backup();
    let watch = cluster.watch(Kind::Pod, 0).expect("it begins with all");
    cluster.put_back(&backup, OpenWatches::Expired);
    let WatchPoll::Event(event) = cluster.poll_watch(watch) else {
        panic!("it says nothing");
    };
    assert_eq!(
        (event.kind, &event.object["code"]),
        (EventKind::Error, &410.into())
    );
    assert_eq!(cluster.poll_watch(watch), WatchPoll::Closed);
}

#[test]
fn silent_watches_tell_nothing_until_the_store_gets_past_what_it_had_reached() {
    let (mut cluster, backup) = with_backup();
    let reached = cluster.version();
    let open = cluster.watch(Kind::Pod, reached).expect("it is the newest");
    cluster.put_back(&backup, OpenWatches::Silent);
    let opened = cluster.watch(Kind::Pod, reached).expect("it waits");
    let mut number = 0;
    while cluster.version() < reached {
        number += 1;
        cluster.created(pod(&format!("lost-{number}")));
        cluster.send_bookmarks();
        if cluster.version() < reached {
            assert_eq!(cluster.poll_watch(open), WatchPoll::Pending);
            assert_eq!(cluster.poll_watch(opened), WatchPoll::Pending);
        }
    }
    cluster.created(pod("delivered"));
    for watch in [open, opened] {
        let delivered = std::iter::from_fn(|| match cluster.poll_watch(watch) {
            WatchPoll::Event(event) => Some(event),
            WatchPoll::Pending | WatchPoll::Closed => None,
        });
        let delivered: Vec<_> = delivered
            .filter(|event| event.kind == EventKind::Added)
            .collect();
        assert_eq!(delivered.len(), 1);
        assert_eq!(delivered[0].object["metadata"]["name"], "delivered");
    }
}
