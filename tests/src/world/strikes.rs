//! Crashes at boundaries of operations: executes the planned crash at its boundary.

use super::{
    boundaries::{Boundary, Crash, InFlight, Moment, Party, Strike},
    state::World,
};

impl World {
    /// Starts to record the passed boundaries.
    pub fn record_boundaries(&mut self) {
        self.boundaries.record();
    }

    /// Returns the passed boundaries, if recorded.
    #[must_use]
    pub fn boundaries(&self) -> &[Boundary] {
        self.boundaries.passed()
    }

    /// Plans a crash.
    pub const fn plan_strike(&mut self, strike: Strike) {
        let chance = match strike.in_flight {
            InFlight::Delivered => 0,
            InFlight::Lost => 1_000,
        };
        self.chaos.lose_frames = chance;
        self.chaos.lose_calls = chance;
        self.boundaries.plan(strike);
    }

    /// Returns the boundary of the planned crash, once it has happened.
    #[must_use]
    pub const fn struck(&self) -> Option<Boundary> {
        self.boundaries.struck()
    }

    /// Passes the boundary of an operation of an agent, and executes a crash planned there.
    pub(super) fn pass(&mut self, what: &'static str, moment: Moment, party: Party) {
        let Some(crash) = self.boundaries.pass(Boundary { what, moment }) else {
            return;
        };
        let life = match party {
            Party::Life(life) => Some(life),
            Party::Connection(connection) => self.routes.get(&connection).map(|route| route.life),
        };
        life.into_iter().for_each(|life| self.strike(crash, life));
    }

    fn strike(&mut self, crash: Crash, life: u64) {
        let actor = self.agents.get(&life);
        let connection = actor.and_then(|actor| actor.connection);
        let route = connection.and_then(|connection| self.routes.get(&connection));
        let server = route.map_or(0, |route| route.server);
        if matches!(crash, Crash::Server | Crash::Both) {
            self.kill_server(server);
        }
        if matches!(crash, Crash::Agent | Crash::Both) {
            self.end_agent(life);
        }
        if crash == Crash::Connection {
            connection.into_iter().for_each(|it| self.cut(it));
        }
    }
}
