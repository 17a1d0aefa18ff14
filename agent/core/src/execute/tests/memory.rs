//! The memory of the batches in flight.

use super::*;

#[test]
fn batches_beyond_the_memory_for_them_are_refused_until_others_have_ended() {
    let huge = |id| v1::Batch {
        reasons: vec![v1::Reason {
            detail: "x".repeat(BYTES_IN_FLIGHT_MAX),
            ..v1::Reason::default()
        }],
        ..batch(id, delete(&["a"]))
    };
    let mut rig = Rig::new(&[pod("a", 1)]);
    rig.batches.handle_batch(huge(1));
    assert_eq!(rig.outcomes(), [], "the first is taken in any case");
    let another = v1::ObjectRef {
        uid: "rs2".into(),
        ..owner()
    };
    let small = v1::Batch {
        replica_set: Some(another),
        ..batch(2, delete(&["b"]))
    };
    rig.batches.handle_batch(small.clone());
    let refused = rig.batches.outcomes[0].outcome.clone();
    let message = "the batches in flight take too much memory";
    assert_eq!(refused, Some(unstarted(NotStartedCause::Guard, message)));
    assert_eq!(rig.outcomes(), [(0, "NOT_STARTED_CAUSE_GUARD")]);
    rig.call();
    rig.answer_first();
    assert_eq!(rig.batches.bytes, 0);
    rig.batches.handle_batch(v1::Batch { id: 3, ..small });
    assert_eq!(rig.batches.operations, 1, "the first has ended");
}
