//! The calls of a traced batch belong to its trace.

use super::*;

#[test]
fn calls_have_the_trace_of_their_batch() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let long = traceparent.repeat(1_000);
    for (sent, kept) in [(traceparent, traceparent), ("", ""), (&long, "")] {
        let mut rig = Rig::new(&[]);
        let traced = |id| v1::Batch {
            traceparent: sent.to_owned(),
            ..batch(id, create(1))
        };
        rig.batches
            .handle_batch(traced(1))
            .expect("it is the first");
        let (now, view) = (Timestamp::UNIX_EPOCH, &mut rig.view);
        let call = rig.batches.poll_call(now, view, &rig.guard);
        let call = call.expect("the first is made");
        assert_eq!(rig.batches.trace(call.id), TraceContext::parse(kept));
    }
}
