//! The connection between agent and server: its opening, its input, its end.

use std::time::Duration;

use agent_core::link::Disconnect;
use decree_api::v1::{self, done, outcome::Outcome, reconcile_request as request};
use server_session::Refusal;

use super::{
    boundaries::Moment,
    happening::{Destination, Happening},
    state::{Route, World},
};
use crate::{actors::disconnect, chaos::Manner, facts::Fact, schedule::Lane};

/// The delay of frames that outcomes overtake.
const OVERTAKEN: Duration = Duration::from_secs(1);

impl World {
    /// Connects an agent to one of the servers.
    pub(super) fn dial(&mut self, life: u64) {
        self.connections += 1;
        let connection = self.connections;
        let server = match self.servers.len() {
            1 => 0,
            many => self.rng.between(0, many as u64 - 1) as usize,
        };
        let epoch = self.agents.get(&life).map_or(0, |actor| actor.epoch);
        let route = Route {
            life,
            epoch,
            server,
        };
        self.routes.insert(connection, route);
        if let Some(actor) = self.living(life) {
            actor.connection = Some(connection);
            actor.frames_out = 0;
        }
        let delay = self.rng.delay(self.chaos.network_max);
        self.schedule
            .after(delay, Happening::Connecting { connection });
    }

    /// Ends the agent's half of the connection; with a cause, the agent sees the end of the other half.
    pub(super) fn hang_up(&mut self, life: u64, cause: Option<Disconnect>) {
        let connection = self.living(life).and_then(|actor| actor.connection);
        let Some(connection) = connection else { return };
        let delay = self.rng.delay(self.chaos.network_max);
        let in_order = cause.is_some();
        self.schedule.on(
            Lane::ToServer(connection),
            delay,
            Happening::ServerSeesEnd {
                connection,
                in_order,
            },
        );
        match cause {
            Some(cause) => {
                let end = Happening::AgentSeesEnd { connection, cause };
                self.schedule.on(Lane::ToAgent(connection), 2 * delay, end);
            }
            None => self
                .living(life)
                .into_iter()
                .for_each(|actor| actor.connection = None),
        }
    }

    pub(super) fn connect(&mut self, connection: u64) {
        let server = self.server_of(connection);
        let up = server.is_some_and(|server| server.handle_connected(connection));
        match self.agent_of(connection) {
            Some((now, actor)) if up => actor.agent.handle_connected(now),
            Some((now, actor)) => {
                actor.connection = None;
                actor
                    .agent
                    .handle_disconnected(now, Disconnect::Lost("refused".to_owned()));
            }
            None => {}
        }
    }

    /// Removes the object after the write from some successes; the version stays, which identifies older lists.
    fn bare(&mut self, frame: &mut v1::ReconcileRequest) {
        let Some(request::Frame::Outcomes(outcomes)) = &mut frame.frame else {
            return;
        };
        for outcome in &mut outcomes.outcomes {
            if let Some(Outcome::Done(done)) = &mut outcome.outcome
                && self.rng.chance(self.chaos.bare)
            {
                done.object = None;
            }
        }
    }

    /// Returns the lane of a frame of an agent, and its delay beyond that of the network.
    pub(super) const fn lane_to_server(
        &self,
        connection: u64,
        frame: &mut v1::ReconcileRequest,
    ) -> (Lane, Duration) {
        let lane = Lane::ToServer(connection);
        if !matches!(self.chaos.manner, Some(Manner::OutcomesOvertake)) {
            return (lane, Duration::ZERO);
        }
        frame.sequence = 0;
        match frame.frame {
            Some(request::Frame::Outcomes(_)) => (Lane::Outcomes(connection), Duration::ZERO),
            _ => (lane, OVERTAKEN),
        }
    }

    /// Changes a frame of an agent as its manner requires.
    fn spoil(&self, connection: u64, frame: &mut v1::ReconcileRequest) {
        let Some(manner) = self.chaos.manner else {
            return;
        };
        match &mut frame.frame {
            Some(request::Frame::SnapshotEnd(end)) if manner == Manner::UnversionedLists => {
                end.resource_version.clear();
            }
            Some(request::Frame::SnapshotEnd(end)) if manner == Manner::OlderLists => {
                if let Some(first) = self.first_listed.get(&(connection, end.kind)) {
                    end.resource_version = first.saturating_sub(1).to_string();
                }
            }
            Some(request::Frame::Outcomes(it)) if manner == Manner::HearsNothing => {
                let outcomes = it.outcomes.iter_mut();
                outcomes.for_each(leave_open);
            }
            Some(request::Frame::Outcomes(it)) => {
                it.outcomes.retain(|it| !manner.withholds(it.batch_id));
                if it.outcomes.is_empty() {
                    frame.frame = Some(request::Frame::Heartbeat(v1::Heartbeat::default()));
                }
            }
            _ => {}
        }
    }

    pub(super) fn hear_agent(&mut self, connection: u64, mut frame: v1::ReconcileRequest) {
        self.bare(&mut frame);
        self.spoil(connection, &mut frame);
        self.mutate_frame(&mut frame);
        self.encounters.note_outcomes(&frame);
        self.note_sent(connection, &frame);
        let now = self.now();
        if let Some((_, actor)) = self.agent_of(connection) {
            actor.frames_out = actor.frames_out.saturating_sub(1);
        }
        if let Some(server) = self.server_of(connection) {
            server.handle_frame(now, connection, frame);
        }
    }

    pub(super) fn send_frame(
        &mut self,
        connection: u64,
        frame: v1::ReconcileResponse,
        batches: Vec<(v1::Batch, Result<(), String>)>,
    ) {
        self.encounters.note_frame(&frame);
        for (batch, verdict) in batches {
            let life = self.routes.get(&connection).map_or(0, |route| route.life);
            self.ledger.note_batch(life, connection, &batch);
            self.note_creates(connection, &batch);
            self.facts.push(Fact::BatchSent {
                connection,
                batch: Box::new(batch),
                verdict,
            });
        }
        let delay = self.rng.delay(self.chaos.network_max);
        let sent = Happening::ToAgent { connection, frame };
        let operation = sent.operation();
        self.schedule.on(Lane::ToAgent(connection), delay, sent);
        if let Some((what, party)) = operation {
            self.pass(what, Moment::Sent, party);
        }
    }

    /// Notes the server that has decided creates.
    fn note_creates(&mut self, connection: u64, batch: &v1::Batch) {
        let server = self.routes.get(&connection).map_or(0, |route| route.server);
        let started = self.server_of(connection).map(|it| it.started());
        if let (Some(v1::batch::Action::Create(_)), Some(set), Some(started)) =
            (&batch.action, &batch.replica_set, started)
        {
            let set = (&*set.uid, (&*set.namespace, &*set.name));
            self.ledger
                .creates_paid
                .note_decided(set, (server, started));
        }
    }

    /// Tells the agent that the server has ended its session. A correct agent causes no other refusals than these.
    pub(super) fn send_end(&mut self, connection: u64, refusal: Option<&Refusal>) {
        let Some(refusal) = refusal else { return };
        self.encounters.note(refusal.reason());
        self.facts.push(Fact::SessionEnded {
            connection,
            refusal: refusal.clone(),
        });
        let fair = matches!(
            refusal,
            Refusal::Superseded { .. }
                | Refusal::EpochTooOld { .. }
                | Refusal::Silent(_)
                | Refusal::OutcomesMissing(_)
                | Refusal::ListMissing(..)
                | Refusal::Draining { .. }
        );
        if !fair && !self.is_expected(refusal) {
            let text = format!("by the agent: {refusal}");
            self.facts.push(Fact::ProtocolBroken(text));
        }
        self.send_cut(connection, disconnect(Some(refusal)));
    }

    /// Whether an agent that breaks the protocol on purpose may cause this refusal.
    const fn is_expected(&self, refusal: &Refusal) -> bool {
        matches!(
            (self.chaos.manner, refusal),
            (Some(Manner::OlderLists), Refusal::VersionsWentBack { .. })
        )
    }

    /// Notes the parts of a frame that checkers need.
    fn note_sent(&mut self, connection: u64, frame: &v1::ReconcileRequest) {
        match &frame.frame {
            Some(request::Frame::Outcomes(outcomes)) => {
                let batches = outcomes.outcomes.iter().map(|it| it.batch_id);
                self.facts.push(Fact::Answered {
                    connection,
                    batches: batches.collect(),
                });
            }
            Some(request::Frame::SnapshotEnd(end)) => {
                let version = end.resource_version.parse().unwrap_or(u64::MAX);
                let first = self.first_listed.entry((connection, end.kind));
                if version < *first.or_insert(version) {
                    self.facts.push(Fact::OlderList { connection });
                }
            }
            Some(
                request::Frame::Hello(_)
                | request::Frame::SnapshotBegin(_)
                | request::Frame::SnapshotObjects(_)
                | request::Frame::Events(_)
                | request::Frame::Heartbeat(_)
                | request::Frame::Nodes(_)
                | request::Frame::Costs(_),
            )
            | None => {}
        }
    }

    pub(super) fn send_cut(&mut self, connection: u64, cause: Disconnect) {
        let delay = self.rng.delay(self.chaos.network_max);
        let end = Happening::AgentSeesEnd { connection, cause };
        self.schedule.on(Lane::ToAgent(connection), delay, end);
    }

    /// Whether a message never arrives, because its direction has fallen silent.
    pub(super) fn is_lost(&self, happening: &Happening) -> bool {
        let silent = |connection: &u64| self.silent.get(connection);
        match happening.destination() {
            Destination::Server(it) => silent(&it).is_some_and(|silence| silence.to_server),
            Destination::Agent(it) => silent(&it).is_some_and(|silence| silence.to_agent),
            Destination::Process(_) | Destination::Elsewhere => false,
        }
    }

    pub(super) fn hear_server(&mut self, connection: u64, frame: v1::ReconcileResponse) {
        if let Some((now, actor)) = self.agent_of(connection) {
            let life = actor.life;
            actor.agent.handle_frame(now, frame);
            self.facts.push(Fact::Heard { life });
        }
    }

    pub(super) fn agent_sees_end(&mut self, connection: u64, cause: Disconnect) {
        if let Some((now, actor)) = self.agent_of(connection) {
            actor.connection = None;
            actor.agent.handle_disconnected(now, cause);
        }
    }
}

/// Turns the success of an operation on a pod into an unknown effect.
fn leave_open(outcome: &mut v1::Outcome) {
    if let Some(Outcome::Done(done)) = &outcome.outcome
        && matches!(done.object, Some(done::Object::Pod(_)))
    {
        outcome.outcome = Some(Outcome::Failed(v1::Failed {
            failure_class: v1::FailureClass::Timeout.into(),
            ..v1::Failed::default()
        }));
    }
}
