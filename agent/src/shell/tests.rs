//! When an agent is not ready. The conformance kit and the tier `grpc` test the shell against servers.

use super::*;

#[test]
fn agent_is_not_ready_a_minute_after_it_could_watch_last() {
    let at = |seconds| Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds);
    let check = |unwatched, now| check_watched(&[None, unwatched], at(now));
    assert_eq!(check(Some(at(0)), 59), Ok(()));
    check(Some(at(0)), 60).expect_err("it has lasted a minute");
    assert_eq!(check(None, 600), Ok(()));
}
