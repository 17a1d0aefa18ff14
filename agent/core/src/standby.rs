//! When an agent may begin beside a built-in controller that may be running.
//!
//! Nothing shows which controllers a kube-controller-manager runs. So the agent changes the probe, its own ReplicaSet with no desired pods,
//! and reads from the probe's status who has seen the change. A running built-in controller reports within a second. A stopped process may
//! be replaced on another machine, with a Lease of 15 seconds between the two. So the agent waits longer than that.

use std::time::Duration;

use jiff::Timestamp;

/// How long nobody must report the change of the probe before the built-in controller counts as off.
const SILENCE: Duration = Duration::from_secs(30);
/// The same silence if an agent has found the built-in controller off before.
const SILENCE_AGAIN: Duration = Duration::from_secs(2);
/// How long after an answer the probe is changed again.
const PERIOD: Duration = Duration::from_secs(5);
/// The interval between looks at the probe.
const LOOK: Duration = Duration::from_millis(500);

/// Who has reported the last change of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// Nobody.
    Nobody,
    /// The built-in controller.
    BuiltIn,
    /// Another one, such as an agent that acts.
    Another,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at the probe after this time.
    Look(Duration),
    /// Change the probe after this time.
    Change(Duration),
    /// Begin: the built-in controller is off, or another agent acts already.
    Begin,
}

/// An agent that waits until the built-in controller is off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standby {
    changed: Option<Timestamp>,
    found_off: bool,
}

// === impl Standby ===

impl Standby {
    /// Notes that the probe was changed. `found_off` means that an agent has found the built-in controller off before.
    pub const fn handle_changed(&mut self, now: Timestamp, found_off: bool) {
        self.changed = Some(now);
        self.found_off = found_off;
    }

    /// Takes a look at the probe, and returns what to do next.
    pub fn handle_look(&mut self, now: Timestamp, seen_by: SeenBy) -> Next {
        let Some(changed) = self.changed else {
            return Next::Change(Duration::ZERO);
        };
        let silence = if self.found_off {
            SILENCE_AGAIN
        } else {
            SILENCE
        };
        match seen_by {
            SeenBy::Another => Next::Begin,
            SeenBy::BuiltIn => Next::Change(PERIOD),
            SeenBy::Nobody if now.duration_since(changed).unsigned_abs() >= silence => Next::Begin,
            SeenBy::Nobody => Next::Look(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    #[test]
    fn built_in_controller_is_off_once_it_is_silent_for_long_enough_after_the_last_change() {
        use SeenBy::{Another, BuiltIn, Nobody};
        let look = Next::Look(LOOK);
        let change = Next::Change(PERIOD);
        for (changed, found_off, looks) in [
            (0, false, [(1, Nobody, look), (2, BuiltIn, change)]),
            // Its process ends, and a process on another machine takes over.
            (7, false, [(30, Nobody, look), (31, BuiltIn, change)]),
            (0, false, [(29, Nobody, look), (30, Nobody, Next::Begin)]),
            // An agent that comes after another begins soon.
            (0, true, [(1, Nobody, look), (2, Nobody, Next::Begin)]),
            (0, true, [(0, Another, Next::Begin), (1, BuiltIn, change)]),
        ] {
            let mut standby = Standby::default();
            let first = standby.handle_look(at(0), Nobody);
            assert_eq!(first, Next::Change(Duration::ZERO));
            standby.handle_changed(at(0), false);
            standby.handle_changed(at(changed), found_off);
            for (second, seen_by, next) in looks {
                let decided = standby.handle_look(at(second), seen_by);
                assert_eq!(decided, next, "{seen_by:?} at second {second}");
            }
        }
    }
}
