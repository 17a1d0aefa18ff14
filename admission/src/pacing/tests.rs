//! When steps wait for a permit, and when it is returned.

use super::*;
use crate::fair_queue::FairQueue;

#[tokio::test]
async fn busy_session_gives_its_permit_back_after_a_slice_and_when_it_waits() {
    let queue = FairQueue::one_for_each_peer();
    let mut pacer = SessionPacer::new(queue.peer("p"));
    pacer
        .queue
        .usage()
        .work(pacer.until, pacer.until + SLICE, SLICE);
    pacer.step(false, || ()).await;
    let (permit, _) = pacer.permit.take().expect("its slice is not over");
    pacer.permit = Some((permit, pacer.until));
    pacer.step(false, || ()).await;
    assert!(pacer.permit.is_none());
    pacer.step(true, || ()).await;
    let never = pacer.wait(std::future::pending::<()>());
    let other = queue.peer("p").pass();
    tokio::select! {
        biased;
        () = never => panic!("nothing comes"),
        () = other => {}
    }
}

#[tokio::test]
async fn large_steps_of_a_peer_run_one_at_a_time() {
    let queue = FairQueue::one_for_each_peer();
    let mut pacer = SessionPacer::new(queue.peer("p"));
    let permit = queue.peer("p").enter().await;
    let step = tokio::spawn(async move { pacer.step(true, || 7).await });
    yield_now().await;
    assert!(!step.is_finished());
    drop(permit);
    assert_eq!(step.await.expect("it does not panic"), 7);
}
