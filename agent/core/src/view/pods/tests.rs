//! Which pods and operations count, and from when to when.

use super::*;
use crate::tests::{RS, deleting, orphan, pod};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pods(all: &[v1::Pod]) -> Pods {
    let mut pods = Pods::default();
    all.iter().for_each(|pod| pods.apply(pod));
    pods
}

fn ready(pod: v1::Pod) -> v1::Pod {
    let ready = v1::ReadyCondition {
        ready: true,
        since: None,
    };
    v1::Pod {
        ready: Some(ready),
        ..pod
    }
}

fn ended(pod: v1::Pod) -> v1::Pod {
    let phase = v1::PodPhase::Failed.into();
    v1::Pod { phase, ..pod }
}

/// The active, ready, terminating and leaving pods.
fn counted(pods: &Pods) -> (u32, u32, u32, u32) {
    let counts = pods.counts(RS);
    (
        counts.active,
        counts.ready,
        counts.terminating,
        counts.leaving,
    )
}

#[test]
fn pods_count_by_their_state() {
    let mut pods = pods(&[
        pod("a", 1),
        ready(pod("b", 2)),
        deleting(ready(pod("c", 3))),
        deleting(ended(pod("d", 4))),
        ended(pod("e", 5)),
        orphan("f", 6),
    ]);
    assert_eq!(counted(&pods), (2, 1, 1, 0));
    pods.apply(&deleting(ready(pod("b", 7))));
    pods.apply(&orphan("a", 8));
    assert_eq!(counted(&pods), (0, 0, 2, 0));
    pods.delete("uid-c");
    assert_eq!(counted(&pods), (0, 0, 1, 0));
    assert_eq!(pods.peak(RS).active, 2);
    pods.reset_peak(RS);
    assert_eq!(pods.peak(RS), pods.counts(RS));
}

#[test]
fn pod_counts_only_for_a_controller_in_its_own_namespace() {
    // A user who may create pods in another namespace knows the UID.
    let mut forged = pod("m", 1);
    forged.namespace = "another".into();
    let pods = pods(&[forged, pod("a", 2)]);
    assert_eq!(counted(&pods), (1, 0, 0, 0));
}

#[test]
fn older_state_changes_nothing() {
    let mut pods = pods(&[deleting(pod("a", 9))]);
    pods.apply(&pod("a", 8));
    assert_eq!(counted(&pods), (0, 0, 1, 0));
}

#[test]
fn pod_that_is_gone_by_an_answer_stays_gone_until_the_watch_or_a_list_says_so() {
    let mut pods = pods(&[pod("a", 5)]);
    pods.mark_gone("uid-a");
    pods.apply(&pod("a", 6));
    assert!(pods.get("uid-a").is_none());
    assert_eq!(counted(&pods), (0, 0, 0, 0));
    pods.delete("uid-a");
    assert!(pods.by_uid.is_empty());
    pods.mark_gone("uid-a");
    pods.list(Part::Whole, 1, [pod("a", 7)]);
    assert_eq!(counted(&pods), (1, 0, 0, 0));
}

#[test]
fn create_counts_until_its_pod_is_seen_or_it_has_failed() {
    let mut pods = Pods::default();
    for name in ["a", "b", "c"] {
        pods.begin_create(RS, name);
    }
    assert_eq!(pods.creates_besides(RS, "a"), 2);
    pods.apply(&pod("a", 5));
    assert_eq!((pods.creates_besides(RS, "d"), counted(&pods).0), (2, 1));
    pods.end_create(RS, "b", None);
    assert_eq!(pods.creates_besides(RS, "d"), 1);
}

#[test]
fn create_under_the_name_of_an_active_pod_does_not_count_once_that_is_seen_again() {
    let mut pods = Pods::default();
    pods.apply(&pod("a", 5));
    pods.begin_create(RS, "a");
    pods.end_create(RS, "a", Some(NOW));
    assert_eq!(pods.creates_besides(RS, "b"), 1);
    pods.apply(&pod("a", 6));
    assert_eq!((pods.creates_besides(RS, "b"), counted(&pods).0), (0, 1));
}

#[test]
fn create_of_unknown_effect_counts_until_it_can_have_none() {
    let mut pods = Pods::default();
    let end = NOW + jiff::SignedDuration::from_secs(28);
    pods.begin_create(RS, "a");
    pods.end_create(RS, "a", Some(end));
    pods.forget_expired(NOW, RS);
    assert_eq!(pods.creates_besides(RS, "b"), 1);
    pods.begin_create(RS, "a");
    pods.forget_expired(end, RS);
    assert_eq!(pods.creates_besides(RS, "b"), 1, "it was tried again");
    pods.end_create(RS, "a", Some(end));
    pods.forget_expired(end, RS);
    assert_eq!(pods.creates_besides(RS, "b"), 0);
    pods.end_create(RS, "a", None);
    assert!(pods.controllers.is_empty());
}

#[test]
fn pod_leaves_from_the_start_of_its_deletion() {
    let mut pods = pods(&[pod("a", 1), pod("b", 2), pod("c", 3)]);
    for uid in ["uid-a", "uid-b", "uid-c"] {
        pods.begin_delete(RS, uid);
    }
    assert_eq!(counted(&pods), (3, 0, 0, 3));
    assert_eq!(pods.leaving_besides(RS, "uid-a"), 2);
    pods.apply(&deleting(pod("a", 4)));
    pods.end_delete(RS, "uid-b", None);
    let end = NOW + jiff::SignedDuration::from_secs(28);
    pods.end_delete(RS, "uid-c", Some(end));
    assert_eq!(counted(&pods), (2, 0, 1, 1));
    pods.list(Part::Whole, 2, [pod("b", 2), pod("c", 3)]);
    assert_eq!(counted(&pods), (2, 0, 0, 1), "a list resolves nothing");
    pods.forget_expired(end, RS);
    assert_eq!(counted(&pods), (2, 0, 0, 0));
}

#[test]
fn pod_that_leaves_does_so_on_whichever_page_and_try_it_comes() {
    let mut pods = pods(&[pod("a", 1), pod("b", 2)]);
    pods.begin_delete(RS, "uid-b");
    pods.list(Part::First, 1, [pod("a", 1)]);
    assert_eq!(counted(&pods), (1, 0, 0, 0));
    pods.list(Part::First, 1, [pod("a", 1)]);
    pods.list(Part::Middle, 1, [pod("b", 2)]);
    pods.list(Part::Last, 1, [pod("c", 3)]);
    assert_eq!(counted(&pods), (3, 0, 0, 1));
    assert!(pods.unlisted.is_empty());
}

#[test]
fn nothing_is_kept_of_controllers_without_pods() {
    let job = |version| {
        let mut pod = pod("job", version);
        if let Some(controller) = &mut pod.controller {
            (controller.kind, controller.uid) = ("Job".into(), "job".into());
        }
        pod
    };
    let mut pods = pods(&[job(1), pod("a", 2)]);
    pods.delete("uid-job");
    pods.delete("uid-a");
    assert_eq!(pods.controllers.len(), 1, "the peak of the replica set");
    pods.retain_peaks(|_| false);
    assert!(pods.controllers.is_empty());
}

#[test]
fn active_pods_of_replica_sets_are_counted_together() {
    let of = |kind: &str, pod: v1::Pod| {
        let mut pod = pod;
        let controller = pod.controller.as_mut().expect("it has one");
        (controller.kind, controller.uid) = (kind.into(), kind.into());
        pod
    };
    let all = [
        pod("a", 1),
        deleting(pod("b", 2)),
        orphan("c", 3),
        of("ReplicaSet", pod("d", 4)),
        of("DaemonSet", pod("e", 5)),
    ];
    let mut pods = pods(&all);
    assert_eq!(pods.of_replica_sets, 2);
    pods.list(Part::Whole, all.len(), all);
    assert_eq!(pods.of_replica_sets, 2);
    pods.begin_delete(RS, "uid-a");
    pods.mark_gone("uid-a");
    pods.apply(&pod("c", 7));
    assert_eq!(pods.of_replica_sets, 2);
    pods.apply(&deleting(pod("c", 8)));
    pods.delete("uid-d");
    assert_eq!(pods.of_replica_sets, 0);
}
