//! Watches: order, versions, drops, compaction.

use serde_json::json;

use super::{Story, cluster, pod, refusal, replica_set};
use crate::{Cluster, ClusterConfig, DeleteOptions, EventKind, Kind, WatchId, WatchPoll};

#[test]
fn watch_tells_what_comes_after_its_version_in_order() {
    let mut cluster = cluster();
    cluster.created(pod("before"));
    let list = cluster.list(Kind::Pod).expect("no fault is on");
    assert_eq!(list.names().collect::<Vec<_>>(), ["before"]);
    cluster.created(pod("a"));
    let watch = cluster
        .watch(Kind::Pod, list.version)
        .expect("the list is fresh");
    cluster.created(replica_set("web", 1));
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    cluster
        .patch(Kind::Pod, "default", "a", &label)
        .expect("a valid label");
    cluster
        .drop_pod("a", &DeleteOptions::default())
        .expect("it is there");
    assert_eq!(
        delivered(&mut cluster, watch),
        [
            (EventKind::Added, "a".to_owned()),
            (EventKind::Modified, "a".to_owned()),
            (EventKind::Deleted, "a".to_owned()),
        ]
    );
}

#[test]
fn one_version_counts_for_all_kinds() {
    let mut cluster = cluster();
    let start = cluster.version();
    cluster.created(pod("a"));
    let set = cluster.created(replica_set("web", 1));
    assert_eq!(set["metadata"]["resourceVersion"], (start + 2).to_string());
}

#[test]
fn watch_from_zero_begins_with_what_is_there() {
    let mut cluster = cluster();
    cluster.created(pod("b"));
    cluster.created(pod("a"));
    let watch = cluster.watch(Kind::Pod, 0).expect("0 is always good");
    cluster.created(pod("c"));
    let names: Vec<_> = delivered(&mut cluster, watch)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn dropped_watch_goes_on_from_where_it_was() {
    let mut cluster = cluster();
    let watch = watch_pods(&mut cluster);
    let from = cluster.version();
    cluster.drop_watches(Kind::Pod);
    cluster.created(pod("a"));
    assert_eq!(cluster.poll_watch(watch), WatchPoll::Closed);
    let again = cluster
        .watch(Kind::Pod, from)
        .expect("nothing is compacted");
    assert_eq!(delivered(&mut cluster, again).len(), 1);
}

#[test]
fn dropping_pods_leaves_replica_sets_watched() {
    let mut cluster = cluster();
    let sets = cluster
        .watch(Kind::ReplicaSet, 0)
        .expect("0 is always good");
    cluster.drop_watches(Kind::Pod);
    cluster.created(replica_set("web", 1));
    assert_eq!(delivered(&mut cluster, sets).len(), 1);
}

#[test]
fn compacted_version_is_gone_for_new_and_for_slow_watches() {
    let mut cluster = cluster();
    let from = cluster.version();
    let slow = watch_pods(&mut cluster);
    cluster.created(pod("a"));
    cluster.compact(Kind::Pod);
    cluster.created(pod("b"));
    assert_eq!(refusal(cluster.watch(Kind::Pod, from)).0, 410);
    let WatchPoll::Event(event) = cluster.poll_watch(slow) else {
        panic!("the watch says why it ends")
    };
    assert_eq!(
        (event.kind, &event.object["code"]),
        (EventKind::Error, &json!(410))
    );
    assert_eq!(cluster.poll_watch(slow), WatchPoll::Closed);
}

#[test]
fn watch_that_is_too_slow_for_the_log_ends_with_410() {
    let mut cluster = Cluster::new(ClusterConfig {
        watch_log_max: 3,
        ..ClusterConfig::default()
    });
    let slow = watch_pods(&mut cluster);
    for name in ["a", "b", "c", "d"] {
        cluster.created(pod(name));
    }
    let WatchPoll::Event(event) = cluster.poll_watch(slow) else {
        panic!("the watch says why it ends")
    };
    assert_eq!(event.kind, EventKind::Error);
}

#[test]
fn version_of_the_future_is_refused() {
    let mut cluster = cluster();
    let future = cluster.version() + 1;
    let (code, message) = refusal(cluster.watch(Kind::Pod, future));
    assert_eq!(code, 504);
    assert!(message.contains("Too large resource version"), "{message}");
}

#[test]
fn bookmark_comes_when_all_is_told() {
    let mut cluster = cluster();
    let watch = watch_pods(&mut cluster);
    cluster.created(pod("a"));
    cluster.created(replica_set("web", 1));
    cluster.send_bookmarks();
    let events = delivered(&mut cluster, watch);
    assert_eq!(
        events.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
        [EventKind::Added, EventKind::Bookmark]
    );
    cluster.pass(59_000);
    delivered(&mut cluster, watch);
    cluster.pass(1000);
    assert_eq!(
        delivered(&mut cluster, watch).len(),
        1,
        "a quiet watch gets one each minute"
    );
}

#[test]
fn closed_watch_says_so() {
    let mut cluster = cluster();
    let watch = watch_pods(&mut cluster);
    cluster.close_watch(watch);
    assert_eq!(cluster.poll_watch(watch), WatchPoll::Closed);
}

fn watch_pods(cluster: &mut Cluster) -> WatchId {
    let version = cluster.version();
    cluster
        .watch(Kind::Pod, version)
        .expect("the version is the newest")
}

fn delivered(cluster: &mut Cluster, watch: WatchId) -> Vec<(EventKind, String)> {
    let mut events = Vec::new();
    while let WatchPoll::Event(event) = cluster.poll_watch(watch) {
        let name = event.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        events.push((event.kind, name.to_owned()));
    }
    events
}
