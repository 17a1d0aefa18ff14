//! Unanswered creates, and the session after theirs.

use super::*;

/// How long a create may take effect after the loss of its answer, by default.
const UNSETTLED: Duration = Duration::from_secs(28);

fn no_answer() -> Result<Reply, ApiError> {
    Err(ApiError::no_answer("reset"))
}

fn not_found() -> Result<Reply, ApiError> {
    Err(refusal(404, "NotFound"))
}

fn wait_until(rig: &mut Rig, time: Timestamp) {
    while rig.agent.poll_timeout().is_some_and(|due| due <= time) {
        rig.wait();
    }
    rig.now = rig.now.max(time);
}

#[test]
fn next_hello_waits_until_a_create_of_unknown_effect_can_have_none() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.answer(no_answer());
    rig.answer(not_found());
    assert_eq!(rig.outcomes(), ["FAILURE_CLASS_TIMEOUT"]);
    rig.lose();
    let end = crate::backoff::after(START, UNSETTLED);
    wait_until(&mut rig, end - Duration::from_millis(1));
    assert_eq!(rig.links, []);
    wait_until(&mut rig, end);
    rig.connect();
}

#[test]
fn next_hello_waits_for_a_create_whose_answer_is_lost_after_the_session() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.lose();
    wait_until(
        &mut rig,
        crate::backoff::after(START, Duration::from_secs(5)),
    );
    rig.answer(no_answer());
    let end = crate::backoff::after(rig.now, UNSETTLED);
    wait_until(&mut rig, end - Duration::from_millis(1));
    assert_eq!(rig.links, []);
    wait_until(&mut rig, end);
    rig.connect();
}

#[test]
fn create_that_was_found_delays_nothing() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.answer(no_answer());
    rig.answer(replied(pod("web-0", 11)));
    assert_eq!(rig.outcomes(), ["already existed"]);
    rig.lose();
    let soon = crate::backoff::after(START, Duration::from_secs(2));
    wait_until(&mut rig, soon);
    rig.connect();
}

#[test]
fn agent_ends_when_no_create_can_take_effect_any_more() {
    let mut rig = Rig::open(&[]);
    create_pod(&mut rig);
    rig.agent.handle_shutdown();
    rig.lose();
    rig.answer(no_answer());
    assert!(!rig.agent.is_stopped(rig.now));
    let end = crate::backoff::after(START, UNSETTLED);
    assert_eq!(rig.agent.poll_timeout(), Some(end));
    assert!(rig.agent.is_stopped(end));
}
