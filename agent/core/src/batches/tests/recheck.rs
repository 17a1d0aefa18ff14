//! The read before an adoption, and when there is none.

use super::*;

#[test]
fn stopping_before_the_recheck_answers_adoptions_too() {
    let mut rig = Rig::taking(claim(&["a"], &["b"]), &[orphan("a", 1), pod("b", 2)]);
    rig.batches.stop(NotStartedCause::NotEnforcing, "stopping");
    let not = "NOT_STARTED_CAUSE_NOT_ENFORCING";
    rig.ends_with(&[(1, not), (0, not)]);
}

#[test]
fn nothing_is_read_for_adoptions_that_all_break_a_rule() {
    let stranger = v1::Pod {
        labels: [("app".to_owned(), "other".to_owned())].into(),
        ..orphan("a", 1)
    };
    let mut rig = Rig::taking(claim(&["a"], &[]), &[stranger]);
    rig.guard.lenient = false;
    rig.ends_with(&[(0, "NOT_STARTED_CAUSE_GUARD")]);
}
