//! The status reports the current state (spec 5.4–5.7).

use server_core::{Action, ReplicaSet, Span};

use crate::{
    objects::{pod, set, unready},
    rig::{Rig, written},
};

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
