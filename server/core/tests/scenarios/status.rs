//! The status reports the current state (spec 5.4–5.7).

use server_core::{
    Action, After, Condition, Event, FailureClass, OperationResult, Phase, Pod, ReplicaSet, Span,
    Status,
};

use crate::{
    objects::{START, failure, labels, pod, set, unready, with},
    rig::{Rig, at, counts, deleting, failed, written},
};

fn status_of(set: ReplicaSet, pods: Vec<Pod>) -> Status {
    let mut rig = Rig::of(vec![set], pods);
    rig.settle()
        .iter()
        .rev()
        .find_map(|batch| matches!(batch.action, Action::WriteStatus(_)).then(|| written(batch)))
        .expect("a status is written")
}

#[test]
fn ready_fully_labelled_pods_count_in_every_number() {
    let status = status_of(set("web", 1), vec![pod("a", "web")]);
    assert_eq!(counts(&status), ([1, 1, 1, 1], Some(0)));
}

#[test]
fn counts_are_shown_before_they_are_written() {
    let pods = vec![
        pod("a", "web"),
        Pod {
            labels: labels(&[("app", "web"), ("tier", "front")]),
            ..unready(pod("b", "web"))
        },
        deleting(pod("c", "web")),
    ];
    let newer = ReplicaSet {
        template_labels: labels(&[("app", "web"), ("tier", "front")]),
        ..set("web", 2)
    };
    let rig = Rig::of(vec![newer], pods);
    let status = rig.view("web").status;
    assert_eq!(counts(&status), ([2, 1, 1, 1], Some(1)));
}

#[test]
fn a_template_with_a_new_label_leaves_old_pods_not_fully_labelled() {
    let newer = ReplicaSet {
        template_labels: labels(&[("app", "web"), ("tier", "front")]),
        ..set("web", 2)
    };
    let both = Pod {
        labels: labels(&[("app", "web"), ("tier", "front")]),
        ..pod("b", "web")
    };
    assert_eq!(
        status_of(newer, vec![pod("a", "web"), both]).fully_labeled_replicas,
        1
    );
}

#[test]
fn an_empty_template_label_map_matches_every_pod() {
    let bare = ReplicaSet {
        template_labels: labels(&[]),
        ..set("web", 1)
    };
    assert_eq!(
        status_of(bare, vec![pod("a", "web")]).fully_labeled_replicas,
        1
    );
}

#[test]
fn pending_pods_count_as_replicas_only() {
    let pending = with(unready(pod("a", "web")), |state| {
        state.phase = Phase::Pending;
    });
    let status = status_of(set("web", 1), vec![pending]);
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.available_replicas
        ),
        (1, 0, 0)
    );
}

#[test]
fn pods_on_their_way_out_count_as_terminating_unless_they_ended() {
    let going = |name, phase| with(deleting(pod(name, "web")), |state| state.phase = phase);
    let pods = vec![
        pod("a", "web"),
        going("b", Phase::Running),
        going("c", Phase::Pending),
        going("d", Phase::Failed),
    ];
    let status = status_of(set("web", 1), pods);
    assert_eq!((status.replicas, status.terminating_replicas), (1, Some(2)));
}

#[test]
fn an_absent_terminating_count_is_written_as_zero() {
    let mut fresh = set("web", 0);
    fresh.status.terminating_replicas = None;
    assert_eq!(status_of(fresh, vec![]).terminating_replicas, Some(0));
}

#[test]
fn a_new_generation_is_observed_even_if_nothing_else_changes() {
    let newer = ReplicaSet {
        generation: 7,
        ..set("web", 0)
    };
    assert_eq!(status_of(newer, vec![]).observed_generation, 7);
}

#[test]
fn other_conditions_are_kept_in_their_order() {
    let mut odd = set("web", 0);
    odd.status.conditions = vec![
        Condition {
            kind: "Other".to_owned(),
            ..failure("Why", "text")
        },
        failure("FailedCreate", "old"),
    ];
    let status = status_of(odd, vec![]);
    assert_eq!(
        status
            .conditions
            .iter()
            .map(|condition| &*condition.kind)
            .collect::<Vec<_>>(),
        ["Other"]
    );
}

#[test]
fn the_failure_condition_mirrors_the_latest_attempt_and_keeps_its_time() {
    let mut failing = set("web", 1);
    let first = Condition {
        last_transition: Some(server_core::Timestamp::from_seconds(5)),
        ..failure("FailedDelete", "old words")
    };
    failing.status.conditions = vec![first.clone()];
    let mut rig = Rig::of(vec![failing], vec![]);
    let batch = rig.batch();
    rig.answer(&batch, 0, failed(FailureClass::Quota, "new words"));
    let condition = written(&rig.batch()).conditions.remove(0);
    assert_eq!(
        (&*condition.reason, &*condition.message),
        ("FailedCreate", "new words")
    );
    assert_eq!(condition.last_transition, first.last_transition);
}

#[test]
fn the_failure_condition_goes_when_an_attempt_succeeds() {
    let mut failing = set("web", 1);
    failing.status.conditions = vec![failure("FailedCreate", "quota")];
    let mut rig = Rig::of(vec![failing], vec![]);
    let batch = rig.batch();
    rig.succeed(&batch);
    assert_eq!(written(&rig.batch()).conditions, []);
}

#[test]
fn the_failure_condition_stays_while_nothing_was_tried() {
    let mut failing = set("web", 1);
    failing.status.conditions = vec![failure("FailedCreate", "quota")];
    let mut rig = Rig::of(vec![failing], vec![]);
    let batch = rig.batch();
    rig.fail_all(&batch, FailureClass::NamespaceTerminating);
    assert!(rig.settle().is_empty(), "the status is as it was");
    assert_eq!(rig.errors(), Vec::<String>::new());
}

#[test]
fn a_status_that_cannot_be_written_fails_the_sync_and_is_tried_again() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    let batch = rig.batch();
    rig.answer(&batch, 0, failed(FailureClass::Conflict, "conflict"));
    assert_eq!(written(&rig.batch()), written(&batch), "at once");
    assert_eq!(rig.errors(), ["conflict"]);
}

#[test]
fn a_status_failure_masks_that_of_the_creates() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![]);
    let batch = rig.batch();
    rig.answer(&batch, 0, failed(FailureClass::Quota, "quota"));
    let status = rig.batch();
    rig.answer(&status, 0, failed(FailureClass::Conflict, "conflict"));
    assert_eq!(rig.poll(), None);
    assert_eq!(rig.errors(), ["conflict"]);
}

#[test]
fn the_replica_set_that_a_write_returned_is_the_view() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    let batch = rig.batch();
    let version = Some(rig.next_version());
    let returned = ReplicaSet {
        status: written(&batch),
        version,
        replicas: 3,
        generation: 2,
        ..set("web", 3)
    };
    rig.answer(
        &batch,
        0,
        OperationResult::Done {
            version,
            after: Some(After::ReplicaSet(Box::new(returned))),
        },
    );
    assert!(
        matches!(rig.batch().action, Action::Create { .. }),
        "the write showed a newer spec"
    );
    assert_eq!(START, rig.now);
}

#[test]
fn it_is_known_since_when_there_are_too_few_or_too_many() {
    let pods = vec![pod("a", "web"), unready(pod("b", "web"))];
    let mut rig = Rig::of(vec![set("web", 2)], pods);
    rig.settle();
    assert_eq!(rig.view("web").unconverged_since, Some(START));
    rig.wait(Span::seconds(7));
    let ready = at(pod("b", "web"), 90);
    rig.apply_pod(ready);
    rig.settle();
    assert_eq!(rig.view("web").unconverged_since, None);
    rig.wait(Span::seconds(2));
    rig.apply_replica_set(set("web", 1));
    let surplus = rig.batch();
    let since = START.plus(Span::seconds(9));
    assert_eq!(rig.view("web").unconverged_since, Some(since));
    rig.wait(Span::seconds(1));
    rig.succeed(&surplus);
    rig.settle();
    assert_eq!(rig.view("web").unconverged_since, None);
}

#[test]
fn those_that_lack_pods_or_available_pods_for_ten_minutes_are_counted_until_they_do_not() {
    let pods = vec![unready(pod("a", "web"))];
    let sets = vec![set("web", 1), set("api", 1), set("gone", 1)];
    let mut rig = Rig::of(sets, pods);
    let mut creates = Vec::new();
    while let Some(batch) = rig.poll() {
        if matches!(batch.action, Action::Create { .. }) {
            creates.push(batch)
        } else {
            rig.succeed(&batch)
        }
    }
    let counted = |rig: &Rig| {
        let sizes = rig.controller.inspect().sizes();
        (sizes.miscounted_for_long, sizes.unavailable_for_long)
    };
    rig.wait(Span::seconds(599));
    // A later sync does not begin the ten minutes again.
    rig.apply_pod(unready(pod("a", "web")));
    rig.settle();
    assert_eq!(counted(&rig), (0, 0));
    rig.wait(Span::seconds(1));
    // `api` and `gone` wait for their pods, and `web` for its pod to be ready.
    assert_eq!(counted(&rig), (2, 1));
    let (key, version) = (set("gone", 1).key, Some(rig.next_version()));
    rig.observe(Event::ReplicaSetDeleted { key, version });
    assert_eq!(counted(&rig), (1, 1));
    rig.apply_pod(at(pod("a", "web"), 90));
    rig.settle();
    assert_eq!(counted(&rig), (1, 0));
    let of_api = creates.iter().find(|batch| &*batch.key.name == "api");
    rig.succeed(of_api.expect("`api` lacks a pod"));
    rig.settle();
    // `api` has its pod, and has had it for less than 10 minutes.
    assert_eq!(counted(&rig), (0, 0));
}

/// Answers all batches while somebody changes each written status, for a number of seconds. Returns how many were written in each.
fn writes_a_second(
    rig: &mut Rig,
    seconds: usize,
    mut reset: impl FnMut(&mut ReplicaSet),
) -> Vec<usize> {
    let mut counts = vec![0; seconds];
    for tenth in 0..10 * seconds {
        while let Some(batch) = rig.poll() {
            rig.succeed(&batch);
            if let Action::WriteStatus(_) = batch.action {
                counts[tenth / 10] += 1;
                let known = rig.controller.inspect().replica_set(&batch.key);
                let mut shown = known.expect("it is known").object().clone();
                reset(&mut shown);
                rig.apply_replica_set(shown);
            }
            assert!(counts[tenth / 10] < 1_000, "it runs away");
        }
        rig.wait(Span::millis(100));
    }
    counts
}

#[test]
fn status_that_somebody_resets_is_written_once_a_second_after_the_tenth_time() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    let counts = writes_a_second(&mut rig, 5, |set| set.status.replicas = 7);
    assert_eq!(counts, [10, 1, 1, 1, 1]);
    // Another status is written at once.
    rig.apply_pod(unready(pod("a", "web")));
    assert_eq!(written(&rig.batch()).ready_replicas, 0);
}

#[test]
fn terminating_count_that_came_back_absent_once_is_not_compared() {
    let mut rig = Rig::of(vec![set("web", 1)], vec![pod("a", "web")]);
    let counts = writes_a_second(&mut rig, 5, |set| set.status.terminating_replicas = None);
    assert_eq!(counts.iter().sum::<usize>(), 1);
    // Other fields still are.
    rig.apply_pod(unready(pod("a", "web")));
    assert_eq!(written(&rig.batch()).ready_replicas, 0);
}
