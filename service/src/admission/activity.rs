//! The usefulness of a connection: its calls, and the time since the last call.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The calls of one connection. Clones refer to the same connection.
#[derive(Clone, Debug)]
pub struct Activity(Arc<Mutex<Calls>>);

/// An active call on a connection, until the drop.
#[derive(Debug)]
pub struct ActiveCall(Arc<Mutex<Calls>>);

#[derive(Debug)]
struct Calls {
    active: usize,
    begun: bool,
    idle_since: Instant,
}

impl Activity {
    /// A connection that was just accepted.
    pub fn start() -> Self {
        Self(Arc::new(Mutex::new(Calls {
            active: 0,
            begun: false,
            idle_since: Instant::now(),
        })))
    }

    /// Counts a call until the return value is dropped.
    pub fn begin_call(&self) -> ActiveCall {
        let mut calls = self.0.lock();
        calls.active += 1;
        calls.begun = true;
        drop(calls);
        ActiveCall(Arc::clone(&self.0))
    }

    /// The time at which the connection is idle for too long: `first_call` after the accept, or `idle` after its last call. `None` during a
    /// call.
    pub fn idle_until(&self, first_call: Duration, idle: Duration) -> Option<Instant> {
        let calls = self.0.lock();
        let patience = if calls.begun { idle } else { first_call };
        (calls.active == 0).then(|| calls.idle_since + patience)
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        calls.active -= 1;
        calls.idle_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(5);
    const IDLE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn connection_is_idle_from_its_last_call_on_and_until_then_waits_for_its_first() {
        let activity = Activity::start();
        let accepted = Instant::now();
        assert_eq!(activity.idle_until(FIRST, IDLE), Some(accepted + FIRST));
        let calls = (activity.begin_call(), activity.clone().begin_call());
        assert_eq!(activity.idle_until(FIRST, IDLE), None);
        drop(calls.0);
        assert_eq!(activity.idle_until(FIRST, IDLE), None);
        tokio::time::advance(IDLE * 2).await;
        drop(calls.1);
        assert_eq!(activity.idle_until(FIRST, IDLE), Some(accepted + IDLE * 3));
    }
}
