//! The costs of groups of pods: they grow, stay where they can, and have room.

use proptest::prelude::*;

use super::*;

const MANY: usize = 70_000;

#[test]
fn costs_keep_as_many_pods_as_possible_as_they_are() {
    for (groups, expected) in [
        // Nothing is written for the larger group, which has no cost.
        (vec![(0, 2), (0, 5)], vec![-1_000, 0]),
        (vec![(0, 5), (0, 2)], vec![0, 1_000]),
        // A new pod comes first, last, or between others.
        (vec![(0, 1), (-1_000, 1), (0, 9)], vec![-2_000, -1_000, 0]),
        (vec![(0, 9), (1_000, 1), (0, 1)], vec![0, 1_000, 2_000]),
        (vec![(0, 1), (0, 3), (1_000, 1)], vec![-1_000, 0, 1_000]),
        (vec![(0, 3), (0, 1), (1_000, 1)], vec![0, 500, 1_000]),
        // One pod changes its place.
        (vec![(5, 1), (1, 1), (2, 1), (3, 1)], vec![-999, 1, 2, 3]),
        (vec![(0, 1), (0, 1), (1, 3)], vec![-1_000, 0, 1]),
        // There is no room, so all are spread anew.
        (vec![(0, 4), (9, 1), (1, 5)], vec![-1_000, 0, 1_000]),
        (vec![(i32::MAX, 1), (0, 1)], vec![-1_000, 0]),
        (
            vec![(i32::MIN, 9), (i32::MAX, 9), (0, 1)],
            vec![-1_000, 0, 1_000],
        ),
        (Vec::new(), Vec::new()),
    ] {
        assert_eq!(costs(&groups), expected, "{groups:?}");
    }
}

#[test]
fn room_is_enough_for_more_pods_than_a_replica_set_has() {
    let costs = costs(&vec![(i32::MAX, 1); MANY]);
    assert!(costs.len() == MANY && costs.is_sorted_by(|one, next| one < next));
}

proptest! {
    #[test]
    fn costs_grow_and_are_decided_again(groups in proptest::collection::vec((prop_oneof![-9..9_i32, any::<i32>()], 1..4_usize), 0..30)) {
        let decided = costs(&groups);
        prop_assert!(decided.len() == groups.len() && decided.is_sorted_by(|one, next| one < next), "{:?}", decided);
        let written: Vec<_> = decided.iter().zip(&groups).map(|(cost, (_, pods))| (*cost, *pods)).collect();
        prop_assert_eq!(costs(&written), decided);
    }
}
