//! When steps wait for a permit, and when it is returned.

use std::task::Waker;

use tokio::time::timeout;

use super::*;
use crate::admission::fair_queue::FairQueue;

const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn session_gives_its_permit_back_after_a_slice_and_when_it_waits() {
    let queue = FairQueue::one_for_each_peer();
    let mut pacer = SessionPacer::new(queue.peer("p"));
    pacer.step(false, || ()).await;
    // On a slow machine, the slice may be over already.
    pacer.turn().await;
    let (permit, end) = pacer.permit.take().expect("it keeps it");
    pacer.permit = Some((permit, end - SLICE));
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
async fn steps_of_a_peer_run_one_at_a_time() {
    let queue = FairQueue::one_for_each_peer();
    let mut pacer = SessionPacer::new(queue.peer("p"));
    let permit = queue.peer("p").enter().await;
    let step = tokio::spawn(async move { pacer.step(false, || 7).await });
    yield_now().await;
    assert!(!step.is_finished());
    drop(permit);
    assert_eq!(step.await.expect("it does not panic"), 7);
}

#[tokio::test(start_paused = true)]
async fn connection_that_does_not_get_to_read_keeps_no_permit() {
    let peer = FairQueue::one_for_each_peer().peer("p");
    let permit = peer.enter().await;
    let mut pacer = ConnectionPacer::start();
    let read = |pacer: &mut ConnectionPacer| {
        let mut cx = Context::from_waker(Waker::noop());
        pacer.poll_read(&mut cx, || peer.clone()).is_ready()
    };
    // It reads until it is busy.
    while read(&mut pacer) {}
    yield_now().await;
    drop(permit);
    // Nobody polls the connection while its writes are stuck.
    let others = timeout(PATIENCE, peer.clone().pass()).await;
    assert!(others.is_ok(), "the sessions of its peer wait for it");
    assert!(read(&mut pacer));
}
