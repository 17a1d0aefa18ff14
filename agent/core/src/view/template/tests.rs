//! The ReplicaSets that are kept, and for how long.

use super::*;
use crate::tests::replica_set;

#[test]
fn older_state_takes_nothing_back() {
    let mut templates = Templates::default();
    templates.apply(&replica_set(12, 2));
    templates.apply(&replica_set(10, 1));
    assert_eq!(
        templates
            .newest("rs")
            .map(|set| set.resource_version.as_str()),
        Some("12")
    );
    assert!(templates.of_generation("rs", 1).is_none());
}

#[test]
fn desired_pods_are_counted_as_replica_sets_come_change_and_go() {
    let set = |uid: &str, replicas| {
        let mut set = replica_set(10, 1);
        (set.projected.uid, set.projected.replicas) = (uid.to_owned(), replicas);
        set
    };
    let mut templates = Templates::default();
    for (uid, replicas, all) in [
        ("1", Some(5), 5),
        ("2", None, 6),
        ("3", Some(0), 6),
        ("1", Some(2), 3),
        ("3", Some(i32::MAX), 2_147_483_650),
        ("4", Some(i32::MAX), u32::MAX),
        ("5", Some(-1), u32::MAX),
        ("6", Some(9), u32::MAX),
    ] {
        templates.apply(&set(uid, replicas));
        assert_eq!(templates.desired(), all, "{uid}");
    }
    templates.retain(|uid| ["1", "2", "5"].contains(&uid));
    assert_eq!(templates.desired(), 3);
    templates.delete("2");
    templates.delete("2");
    assert_eq!(templates.desired(), 2);
}
