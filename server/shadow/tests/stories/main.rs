//! Another controller acts, and its acts are compared with the decisions.

use server_core::{Pod, Ready, ReplicaSet, Span, Status, Timestamp};
use server_shadow::{Departure, Difference, LATE, PENDING_MAX, Subject};

use crate::{
    beside::Beside,
    objects::{START, failure, labels, orphan, pod, set, unready, with},
};

mod beside;
#[path = "../../../core/tests/scenarios/objects.rs"]
mod objects;

/// A ReplicaSet whose status reports that all its pods exist and are ready.
fn full(name: &str, replicas: i32) -> ReplicaSet {
    let sound = set(name, replicas);
    ReplicaSet {
        status: Status {
            replicas,
            fully_labeled_replicas: replicas,
            ready_replicas: replicas,
            available_replicas: replicas,
            ..sound.status
        },
        ..sound
    }
}

#[test]
fn the_same_done_late_and_in_steps_is_no_difference() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    beside.apply_replica_set(ReplicaSet {
        replicas: 3,
        generation: 2,
        ..full("web", 1)
    });
    assert_eq!(beside.departures(Span::seconds(10)), []);
    beside.apply_pod(pod("web-x", "web"));
    assert_eq!(beside.departures(Span::seconds(10)), []);
    beside.apply_pod(pod("web-y", "web"));
    let mut done = full("web", 3);
    (done.generation, done.status.observed_generation) = (2, 2);
    beside.apply_replica_set(done);
    assert_eq!(beside.departures(PENDING_MAX), []);
    assert!(beside.shadow.agreements().compared() >= 2, "it did compare");
}

#[test]
fn pods_shown_before_the_scale_that_called_for_them_are_no_difference() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    beside.apply_pod(pod("web-x", "web"));
    beside.apply_pod(pod("web-y", "web"));
    beside.apply_replica_set(full("web", 3));
    assert_eq!(beside.departures(PENDING_MAX), []);
}

#[test]
fn one_pod_too_many_differs_in_count() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    let extra = unready(pod("web-x", "web"));
    beside.apply_pod(extra.clone());
    beside.delete_pod(&extra);
    let reported = beside.after(PENDING_MAX);
    assert_eq!(reported.len(), 1, "{reported:?}");
    let finding = &reported[0].finding;
    assert_eq!((finding.subject, finding.departure), (Subject::Count, None));
    assert_eq!(finding.decided.text, "at most 1 pod at a time");
    assert_eq!(finding.done.text, "2 pods");
    assert_eq!(beside.shadow.agreements().of(Subject::Count).unexplained, 1);
}

/// Scales down by one, from two pods of which one is not ready, and deletes one of them. Returns the differences in victims.
fn one_goes(beside: &mut Beside, names: [&str; 2], victim: &str) -> Vec<Difference> {
    let [ready, other] = names.map(|name| pod(name, "web"));
    beside.apply_pod(ready);
    beside.apply_pod(unready(other));
    beside.apply_replica_set(full("web", 1));
    beside.delete_pod(&pod(victim, "web"));
    let mut reported = beside.after(LATE.plus_a_second());
    reported.retain(|difference| difference.finding.subject == Subject::Victims);
    for name in names {
        beside.delete_pod(&pod(name, "web"));
    }
    beside.apply_replica_set(full("web", 2));
    beside.after(PENDING_MAX);
    reported
}

#[test]
fn chosen_victims_are_no_difference_and_others_are_told_with_both_sides() {
    let mut beside = Beside::of(vec![full("web", 2)], Vec::new());
    assert_eq!(one_goes(&mut beside, ["web-a", "web-b"], "web-b"), []);
    let told = one_goes(&mut beside, ["web-c", "web-d"], "web-c");
    assert_eq!(told.len(), 1, "{told:?}");
    let finding = &told[0].finding;
    assert_eq!(finding.decided.text, "delete web-d (not ready)");
    assert_eq!(finding.decided.pods, ["web-d"]);
    assert_eq!(finding.done.text, "deleted web-c");
    assert_eq!(finding.done.pods, ["web-c"]);
    assert_eq!(finding.departure, Some(Departure::DeletedByOthers));
}

#[test]
fn who_deletes_others_than_the_chosen_again_and_again_is_not_believed() {
    let mut beside = Beside::of(vec![full("web", 2)], Vec::new());
    let mut departures = Vec::new();
    for round in 0..5 {
        let names = [format!("web-{round}a"), format!("web-{round}b")];
        let told = one_goes(&mut beside, [&names[0], &names[1]], &names[0]);
        departures.extend(told.into_iter().map(|told| told.finding.departure));
    }
    let believed = Some(Departure::DeletedByOthers);
    assert_eq!(departures, [believed, None, None, None, None]);
    let agreement = beside.shadow.agreements().of(Subject::Victims);
    assert_eq!((agreement.explained, agreement.unexplained), (1, 4));
}

#[test]
fn pod_that_somebody_deletes_while_none_is_too_many_is_counted_and_no_difference() {
    let pods = vec![pod("web-a", "web"), pod("web-b", "web")];
    let mut beside = Beside::of(vec![full("web", 2)], pods);
    beside.delete_pod(&pod("web-a", "web"));
    beside.apply_pod(pod("web-c", "web"));
    assert_eq!(beside.departures(PENDING_MAX), []);
    assert_eq!(beside.shadow.deleted_by_others(), 1);
}

#[test]
fn pod_that_is_adopted_later_was_not_too_many_before() {
    let pods = vec![pod("web-a", "web"), pod("web-b", "web")];
    let mut beside = Beside::of(vec![full("web", 2)], pods);
    beside.delete_pod(&pod("web-a", "web"));
    beside.apply_pod(pod("web-c", "web"));
    beside.after(Span::seconds(3));
    beside.apply_pod(orphan("web-d", "web"));
    beside.apply_pod(pod("web-d", "web"));
    beside.apply_replica_set(full("web", 3));
    assert_eq!(beside.departures(PENDING_MAX), []);
    assert_eq!(beside.shadow.deleted_by_others(), 1);
}

#[test]
fn victims_shown_before_the_scale_that_called_for_them_are_no_difference() {
    let pods = ["web-a", "web-b", "web-c"].map(|name| pod(name, "web"));
    let mut beside = Beside::of(vec![full("web", 3)], pods.to_vec());
    let first = beside.first_victim("web", 2);
    beside.delete_pod(&pod(&first, "web"));
    beside.after(Span::seconds(3));
    beside.apply_replica_set(full("web", 2));
    let reported = beside.departures(LATE.plus_a_second());
    assert_eq!(reported, []);
    assert_eq!(beside.shadow.deleted_by_others(), 0);
    assert!(beside.shadow.agreements().of(Subject::Victims).compared > 0);
}

#[test]
fn no_more_of_those_that_are_alike_may_go_than_there_are_too_many() {
    let alike = ["web-a", "web-b", "web-c", "web-d"].map(|name| pod(name, "web"));
    for (gone, expected) in [
        (&alike[1..3], vec![]),
        (
            &alike[1..4],
            vec![(Subject::Count, Some(Departure::DeletedByOthers))],
        ),
    ] {
        let mut beside = Beside::of(vec![full("web", 4)], alike.to_vec());
        beside.apply_replica_set(full("web", 2));
        for pod in gone {
            beside.delete_pod(pod);
        }
        let mut reported = beside.departures(LATE.plus_a_second());
        reported.retain(|(subject, _)| *subject != Subject::Status);
        assert_eq!(reported, expected);
    }
}

#[test]
fn victim_of_a_view_between_two_decisions_is_no_difference() {
    let pods = vec![pod("web-a", "web"), unready(pod("web-b", "web"))];
    let mut beside = Beside::of(vec![full("web", 2)], pods);
    beside.apply_replica_set(full("web", 1));
    // The other controller saw web-b as ready, and web-a as not ready.
    beside.apply_undecided(pod("web-b", "web"));
    beside.apply_undecided(unready(pod("web-a", "web")));
    beside.delete_pod(&pod("web-a", "web"));
    assert_eq!(beside.departures(Span::seconds(3)), []);
}

#[test]
fn victim_of_a_decision_a_moment_ago_is_no_difference() {
    let aged = |name, millis: i64| {
        with(unready(pod(name, "web")), |state| {
            state.created = Some(START.plus(Span::millis(-millis)));
        })
    };
    // By the logarithms of their ages, web-b comes first. A quarter of a second ago they were equal, and web-a came first by UID.
    let pods = vec![aged("web-a", 1_200), aged("web-b", 900)];
    let mut beside = Beside::of(vec![full("web", 2)], pods.clone());
    beside.apply_replica_set(full("web", 1));
    assert_eq!(&*beside.first_victim("web", 1), "web-b");
    beside.delete_pod(&pods[0]);
    let mut reported = beside.departures(Span::seconds(3));
    reported.retain(|(subject, _)| *subject == Subject::Victims);
    assert_eq!(reported, []);
}

#[test]
fn cycle_of_upstreams_order_is_no_difference() {
    let since = |seconds| Ready {
        ready: true,
        since: Some(Timestamp::from_seconds(seconds)),
    };
    let start = START.0 / 1_000_000_000;
    let mut pods = ["web-a", "web-b", "web-c"].map(|name| pod(name, "web"));
    pods[0].state.ready = since(start - 1000);
    pods[1].state.ready = since(start - 1000);
    pods[2].state.ready = since(start - 990);
    pods[1].state.restarts = 3;
    let mut beside = Beside::of(vec![full("web", 3)], pods.to_vec());
    beside.apply_replica_set(full("web", 2));
    let chosen = beside.first_victim("web", 2);
    let other = pods.iter().find(|pod| pod.name != chosen);
    beside.delete_pod(other.expect("there are three"));
    assert_eq!(beside.departures(LATE.plus_a_second()), []);
}

#[test]
fn tie_of_upstreams_order_is_no_difference() {
    let believed = Some(Departure::DeletedByOthers);
    for (created, expected) in [
        (START.0, vec![]),
        (START.0 + 1, vec![(Subject::Victims, believed)]),
    ] {
        let other = with(pod("web-b", "web"), |state| {
            state.created = Some(Timestamp(created));
        });
        let pods = vec![unready(pod("web-a", "web")), unready(other.clone())];
        let mut beside = Beside::of(vec![full("web", 2)], pods);
        beside.after(Span::seconds(100));
        beside.apply_replica_set(full("web", 1));
        beside.delete_pod(&other);
        let mut reported = beside.departures(LATE.plus_a_second());
        reported.retain(|(subject, _)| *subject == Subject::Victims);
        assert_eq!(reported, expected);
    }
}

#[test]
fn tie_that_has_just_ended_is_no_difference() {
    let aged = |name, millis: i64| {
        with(unready(pod(name, "web")), |state| {
            state.created = Some(START.plus(Span::millis(-millis)));
        })
    };
    // By the logarithms of their ages, web-c comes first. A tenth of a second ago they were equal, and web-b shares its instant with web-a.
    let pods = vec![
        aged("web-a", 2_200),
        aged("web-b", 2_200),
        aged("web-c", 1_200),
    ];
    let mut beside = Beside::of(vec![full("web", 3)], pods.clone());
    beside.apply_replica_set(full("web", 2));
    assert_eq!(&*beside.first_victim("web", 2), "web-c");
    beside.delete_pod(&pods[1]);
    let mut reported = beside.departures(LATE.plus_a_second());
    reported.retain(|(subject, _)| *subject == Subject::Victims);
    assert_eq!(reported, []);
}

#[test]
fn what_is_due_and_not_done_is_told_once() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    beside.apply_replica_set(full("web", 4));
    let reported = beside.after(PENDING_MAX.plus_a_second());
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(reported[0].finding.decided.text, "create 3");
    assert_eq!(beside.departures(Span::seconds(100)), []);
}

#[test]
fn what_was_tried_in_vain_is_no_difference() {
    let mut failed = full("web", 1);
    failed.replicas = 4;
    failed.status.conditions = vec![failure("FailedCreate", "quota")];
    let mut beside = Beside::of(vec![failed], vec![pod("web-a", "web")]);
    assert_eq!(beside.departures(Span::seconds(100)), []);
}

#[test]
fn status_that_stays_another_is_told_once() {
    let pods = vec![pod("web-a", "web")];
    let mut beside = Beside::of(vec![full("web", 1)], pods);
    let mut wrong = full("web", 1);
    wrong.status.ready_replicas = 0;
    beside.apply_replica_set(wrong);
    assert_eq!(beside.departures(Span::seconds(4)), []);
    assert_eq!(beside.departures(PENDING_MAX), [(Subject::Status, None)]);
    assert_eq!(beside.departures(Span::seconds(100)), []);
    let mut failed = full("web", 1);
    failed.status.conditions = vec![failure("FailedCreate", "quota")];
    beside.apply_replica_set(failed);
    let reported = beside.departures(PENDING_MAX.plus_a_second());
    assert_eq!(
        reported,
        [(Subject::Status, Some(Departure::ReplicaFailure))]
    );
}

#[test]
fn judgement_ends_even_at_the_end_of_time() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    let mut wrong = full("web", 1);
    wrong.status.ready_replicas = 0;
    beside.apply_replica_set(wrong);
    assert_eq!(beside.judges_at(Timestamp(i64::MAX)), None);
}

#[test]
fn owners_that_change_for_a_reason_are_no_difference_and_others_are() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    beside.apply_pod(unready(orphan("web-b", "web")));
    beside.apply_pod(unready(pod("web-b", "web")));
    beside.delete_pod(&pod("web-b", "web"));
    assert_eq!(
        beside.departures(Span::seconds(3)),
        [],
        "the orphan was due"
    );
    let relabeled = Pod {
        labels: labels(&[("app", "other")]),
        ..pod("web-a", "web")
    };
    beside.apply_pod(relabeled.clone());
    beside.apply_pod(Pod {
        controller: None,
        ..relabeled
    });
    beside.apply_pod(pod("web-c", "web"));
    assert_eq!(
        beside.departures(Span::seconds(3)),
        [],
        "the release was due"
    );
    let stray = Pod {
        labels: labels(&[("app", "other")]),
        ..orphan("web-d", "web")
    };
    beside.apply_pod(stray.clone());
    beside.apply_pod(Pod {
        controller: pod("web-d", "web").controller,
        ..stray
    });
    beside.apply_pod(Pod {
        labels: labels(&[("app", "none")]),
        ..pod("web-d", "web")
    });
    let reported = beside.departures(PENDING_MAX.plus_a_second());
    assert_eq!(
        reported,
        [(Subject::Adoption, None)],
        "it was adopted, and is not released: that is one difference"
    );
}

#[test]
fn a_list_begins_everything_anew() {
    let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
    beside.apply_pod(unready(pod("web-x", "web")));
    beside.begin_list();
    assert_eq!(beside.departures(Span::seconds(100)), []);
    assert_eq!(beside.shadow.poll_timeout(), None);
}

/// How a pod leaves its ReplicaSet.
type Leaves = dyn Fn(&mut Beside, Pod);

/// Creates a pod twice a second, and lets the pod before it leave, so that nothing ever rests. Returns how often the number of pods is
/// reported, and the maximum memory in bytes.
fn restless(beside: &mut Beside, span: Span, leaves: &Leaves) -> (usize, usize) {
    let (mut told, mut bytes) = (0, 0);
    let steps = span.0 / Span::millis(500).0;
    for at in 0..steps {
        let extra = unready(pod(&format!("web-{at:06}"), "web"));
        beside.apply_pod(extra.clone());
        leaves(beside, extra);
        let reported = beside.step(Span::millis(500));
        let subjects = reported.iter().map(|difference| difference.finding.subject);
        told += subjects
            .filter(|subject| *subject == Subject::Count)
            .count();
        bytes = bytes.max(beside.shadow.bytes());
    }
    (told, bytes)
}

#[test]
fn replica_set_without_a_rest_is_judged_by_its_count_and_holds_little() {
    let released = |beside: &mut Beside, pod: Pod| {
        let released = Pod {
            controller: None,
            labels: labels(&[("app", "none")]),
            ..pod
        };
        beside.apply_pod(released);
    };
    let deleted = |beside: &mut Beside, pod: Pod| beside.delete_pod(&pod);
    let ways: [(&str, &Leaves); 2] = [("released", &released), ("deleted", &deleted)];
    for (way, leaves) in ways {
        let mut beside = Beside::of(vec![full("web", 1)], vec![pod("web-a", "web")]);
        let (told, _) = restless(&mut beside, Span::seconds(9), leaves);
        assert_eq!(told, 0, "{way}: the ReplicaSet may be shown later");
        let (told, bytes) = restless(&mut beside, Span::seconds(100), leaves);
        assert!(told > 5, "{way}: {told}");
        assert!(
            bytes < 200_000,
            "{way}: {bytes} bytes are held for two pods"
        );
        beside.after(Span::seconds(60));
        assert!(beside.shadow.bytes() < 2_000, "{way}: it is at rest");
    }
}

/// Spans of these stories.
trait Longer {
    fn plus_a_second(self) -> Span;
}

impl Longer for Span {
    fn plus_a_second(self) -> Span {
        Self(self.0 + 1_000_000_000)
    }
}
