//! Bounds for the settings of a server: with any settings, an agent comes back within minutes, and gives up a silent server.

use std::{ops::RangeInclusive, time::Duration};

/// The longest wait before a new connection that a server may request.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// The allowed heartbeat intervals. Four intervals of silence end a session.
const HEARTBEAT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
/// The heartbeat interval if the server names none.
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(10);
/// The most operations in flight, for any server.
const OPERATIONS_IN_FLIGHT_MAX: usize = 50_000;

/// How long a draining agent waits for the server to take its last outcomes.
pub(super) const DRAINING_MAX: Duration = Duration::from_secs(30);
/// The most batches in a frame: each has an operation, and no more of these may be in flight.
pub(super) const BATCHES_MAX: usize = OPERATIONS_IN_FLIGHT_MAX;
/// How many outcomes may wait for a server that sends batches and reads no outcomes.
pub(crate) const OUTCOMES_WAITING_MAX: usize = 2 * OPERATIONS_IN_FLIGHT_MAX;

/// The wait that a server requests, within bounds.
pub(super) fn wait(asked: Duration) -> Duration {
    asked.min(WAIT_MAX)
}

/// The heartbeat interval that a server requests, within bounds.
pub(super) fn heartbeat(asked: Option<prost_types::Duration>) -> Duration {
    asked
        .and_then(|asked| Duration::try_from(asked).ok())
        .filter(|asked| !asked.is_zero())
        .unwrap_or(HEARTBEAT_DEFAULT)
        .clamp(*HEARTBEAT.start(), *HEARTBEAT.end())
}

/// The operations in flight that a server allows, within bounds; 0 allows any number.
pub(crate) fn operations_in_flight(allowed: i32) -> usize {
    match usize::try_from(allowed) {
        Ok(allowed @ 1..) => allowed.min(OPERATIONS_IN_FLIGHT_MAX),
        Ok(0) | Err(_) => OPERATIONS_IN_FLIGHT_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_asks_for_is_bounded() {
        let years = Duration::from_secs(10 * 365 * 24 * 3600);
        assert_eq!(wait(years), WAIT_MAX);
        assert_eq!(wait(Duration::from_secs(7)), Duration::from_secs(7));
        for (seconds, nanos, bounded) in [
            (1 << 62, 0, Duration::from_secs(60)),
            (0, 1, Duration::from_millis(100)),
            (5, 0, Duration::from_secs(5)),
            (i64::MIN, i32::MIN, HEARTBEAT_DEFAULT),
            (0, 0, HEARTBEAT_DEFAULT),
            (-5, 0, HEARTBEAT_DEFAULT),
        ] {
            let asked = prost_types::Duration { seconds, nanos };
            assert_eq!(heartbeat(Some(asked)), bounded);
        }
        assert_eq!(heartbeat(None), HEARTBEAT_DEFAULT);
        assert_eq!(operations_in_flight(10_000), 10_000);
        for allowed in [0, -1, i32::MAX] {
            assert_eq!(operations_in_flight(allowed), OPERATIONS_IN_FLIGHT_MAX);
        }
    }
}
