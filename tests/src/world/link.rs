//! The connection between the halves: how it is opened, what is heard on it, how it ends.

use decree::v1::{self, outcome::Outcome, reconcile_request as request};

use agent_core::link::Disconnect;

use super::{Happening, World};
use crate::{facts::Fact, schedule::Lane};

impl World {
    pub(super) fn dial(&mut self) {
        self.connections += 1;
        let connection = self.connections;
        if let Some(actor) = &mut self.agent {
            actor.connection = Some(connection);
            actor.frames_out = 0;
        }
        let delay = self.dice.delay(self.chaos.network_max);
        self.schedule
            .after(delay, Happening::Connecting { connection });
    }

    /// Ends the agent's half of the connection; with a cause, the agent hears of the other half's end.
    pub(super) fn hang_up(&mut self, cause: Option<Disconnect>) {
        let connection = self.agent.as_mut().and_then(|actor| actor.connection);
        let Some(connection) = connection else { return };
        let delay = self.dice.delay(self.chaos.network_max);
        self.schedule.on(
            Lane::ToServer(connection),
            delay,
            Happening::ServerSeesEnd { connection },
        );
        match cause {
            Some(cause) => {
                let end = Happening::AgentSeesEnd { connection, cause };
                self.schedule.on(Lane::ToAgent(connection), 2 * delay, end);
            }
            None => self
                .agent
                .iter_mut()
                .for_each(|actor| actor.connection = None),
        }
    }

    pub(super) fn connect(&mut self, connection: u64) {
        let now = self.now();
        let up = self.server.is_some();
        let actor = self
            .agent
            .as_mut()
            .filter(|actor| actor.connection == Some(connection));
        match actor {
            Some(actor) if up => actor.agent.handle_connected(now),
            Some(actor) => {
                actor.connection = None;
                actor
                    .agent
                    .handle_disconnected(now, Disconnect::Lost("refused".to_owned()));
            }
            None => {}
        }
    }

    /// Takes the object after the write from some successes; the version stays, by which a list is known to be older.
    fn bare(&mut self, frame: &mut v1::ReconcileRequest) {
        let Some(request::Frame::Outcomes(outcomes)) = &mut frame.frame else {
            return;
        };
        for outcome in &mut outcomes.outcomes {
            if let Some(Outcome::Done(done)) = &mut outcome.outcome
                && self.dice.chance(self.chaos.bare)
            {
                done.object = None;
            }
        }
    }

    pub(super) fn hear_agent(&mut self, connection: u64, mut frame: v1::ReconcileRequest) {
        self.bare(&mut frame);
        let now = self.now();
        let actor = self
            .agent
            .as_mut()
            .filter(|actor| actor.connection == Some(connection));
        if let Some(actor) = actor {
            actor.frames_out = actor.frames_out.saturating_sub(1);
        }
        let Some(server) = &mut self.server else {
            return;
        };
        match server.handle_frame(now, connection, frame) {
            Ok(true) => {}
            Ok(false) => {
                let cause = Disconnect::Lost("the session is over".to_owned());
                let delay = self.dice.delay(self.chaos.network_max);
                let end = Happening::AgentSeesEnd { connection, cause };
                self.schedule.on(Lane::ToAgent(connection), delay, end);
            }
            Err(text) => self
                .facts
                .push(Fact::ProtocolBroken(format!("by the agent: {text}"))),
        }
    }

    pub(super) fn hear_server(&mut self, connection: u64, frame: v1::ReconcileResponse) {
        let now = self.now();
        let actor = self
            .agent
            .as_mut()
            .filter(|actor| actor.connection == Some(connection));
        if let Some(actor) = actor {
            actor.agent.handle_frame(now, frame);
        }
    }

    pub(super) fn agent_sees_end(&mut self, connection: u64, cause: Disconnect) {
        let now = self.now();
        let actor = self
            .agent
            .as_mut()
            .filter(|actor| actor.connection == Some(connection));
        if let Some(actor) = actor {
            actor.connection = None;
            actor.agent.handle_disconnected(now, cause);
        }
    }
}
