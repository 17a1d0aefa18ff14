//! The schedule of a world: one queue of events, in which an event of one lane never overtakes an older one of that lane.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

/// An ordered channel, such as a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// From the agent to the server, by connection.
    ToServer(u64),
    /// Outcomes that overtake other frames from the agent, by connection.
    Outcomes(u64),
    /// From the server to the agent, by connection.
    ToAgent(u64),
    /// A list and watch, by its number in the world.
    Watch(u64),
}

/// A queue of events, with the time.
#[derive(Clone, Debug)]
pub struct Schedule<T> {
    now: Timestamp,
    asked: u64,
    queue: BTreeMap<(Timestamp, u64), T>,
    lanes: BTreeMap<Lane, Timestamp>,
}

impl<T> Schedule<T> {
    /// Returns an empty queue at a time.
    pub const fn new(now: Timestamp) -> Self {
        Self {
            now,
            asked: 0,
            queue: BTreeMap::new(),
            lanes: BTreeMap::new(),
        }
    }

    /// Returns the time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Advances the time.
    pub fn arrive(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }

    /// Schedules an event after a delay.
    pub fn after(&mut self, delay: Duration, thing: T) {
        self.at(self.now + delay, thing);
    }

    /// Schedules an event on a lane after a delay, but not before earlier events of the lane.
    pub fn on(&mut self, lane: Lane, delay: Duration, thing: T) {
        let newest = self.lanes.entry(lane).or_insert(self.now);
        *newest = (*newest).max(self.now + delay);
        let at = *newest;
        self.at(at, thing);
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.queue.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next event, and advances the time to it.
    pub fn pop(&mut self) -> Option<T> {
        let ((at, _), thing) = self.queue.pop_first()?;
        self.arrive(at);
        Some(thing)
    }

    /// Removes all events for which `goes` holds.
    pub fn forget(&mut self, goes: impl Fn(&T) -> bool) {
        self.queue.retain(|_, thing| !goes(thing));
    }

    /// Returns the number of scheduled events for which `counts` holds.
    pub fn count(&self, counts: impl Fn(&T) -> bool) -> usize {
        self.queue.values().filter(|thing| counts(thing)).count()
    }

    fn at(&mut self, at: Timestamp, thing: T) {
        self.asked += 1;
        self.queue.insert((at, self.asked), thing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn earlier_goes_first_and_equals_in_order_of_asking() {
        let mut schedule = Schedule::new(Timestamp::UNIX_EPOCH);
        schedule.after(2 * SECOND, "late");
        schedule.after(SECOND, "first");
        schedule.after(SECOND, "second");
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, ["first", "second", "late"]);
        assert_eq!(schedule.now(), Timestamp::UNIX_EPOCH + 2 * SECOND);
    }

    #[test]
    fn nothing_overtakes_on_its_lane() {
        let mut schedule = Schedule::new(Timestamp::UNIX_EPOCH);
        schedule.on(Lane::ToAgent(1), 3 * SECOND, "slow");
        schedule.on(Lane::ToAgent(1), SECOND, "behind");
        schedule.on(Lane::ToAgent(2), SECOND, "elsewhere");
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop()).collect();
        assert_eq!(order, ["elsewhere", "slow", "behind"]);
    }
}
