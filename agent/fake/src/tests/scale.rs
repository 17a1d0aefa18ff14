//! Size: the cost of one step must not depend on the number of objects.

use super::{cluster, owned, pod, replica_set};
use crate::{Kind, WatchPoll};

#[test]
fn ten_thousand_pods_are_created_and_told_without_a_copy() {
    let mut cluster = cluster();
    let set = cluster
        .create(replica_set("web", 10_000))
        .expect("it is valid");
    let version = cluster.version();
    let watch = cluster
        .watch(Kind::Pod, version)
        .expect("the version is the newest");
    for number in 0..10_000 {
        let pod = owned(pod(&format!("web-{number}")), &set);
        cluster.create(pod).expect("it is valid");
    }
    let WatchPoll::Event(first) = cluster.poll_watch(watch) else {
        panic!("the first pod is delivered")
    };
    let stored = cluster
        .peek(Kind::Pod, "default", "web-0")
        .expect("it is there");
    assert!(std::sync::Arc::ptr_eq(stored, &first.object));
    assert_eq!(
        cluster.list(Kind::Pod).expect("no fault is on").items.len(),
        10_000
    );
}
