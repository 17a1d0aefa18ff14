//! The server of a world: the real sessions and the real registry, in virtual time, as the shell of `decree-server` runs them.
//!
//! Each session has an oracle that reads the same frames and judges each outgoing batch.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use agent_core::link::Disconnect;
use decree_api::v1::{self, reconcile_request as request, reconcile_response as response};
use decree_core::Ledger;
use jiff::Timestamp;
use server_session::{
    Config, End, Now, Refusal, Registered, Session, SessionIdentity, SessionRegistry,
};

mod status;
mod told;

pub use self::status::disconnect;
use self::told::told;
use super::clock::Clock;
use crate::{
    facts::Told,
    mutants::{FaultySession, Mutant, repeated},
    objects::session_config,
    oracle::Oracle,
};

/// The deadline of a drain for the sessions.
const DRAIN_DEADLINE: Duration = Duration::from_secs(2);

/// A decision server.
#[derive(Debug)]
pub struct ServerActor {
    mutant: Option<Mutant>,
    operations_max: usize,
    /// Its clocks.
    pub clock: Clock,
    /// When it started.
    pub started: Timestamp,
    /// The live sessions by their connections.
    sessions: BTreeMap<u64, Held>,
    /// The live session of each cluster and shard; the handle is the connection.
    registry: SessionRegistry<u64>,
    /// The open connections: frames on other connections are dropped.
    connections: BTreeSet<u64>,
    waiting: VecDeque<Sent>,
    /// The notices to people, by the connections of the sessions.
    told: Vec<(u64, Told)>,
    /// The time at which a draining server ends its sessions.
    drained_at: Option<Timestamp>,
}

/// An output of the server.
#[derive(Debug)]
pub enum Sent {
    /// A frame.
    Frame {
        /// The connection.
        connection: u64,
        /// The frame.
        frame: v1::ReconcileResponse,
        /// The batches in the frame, each with the verdict on its view.
        batches: Vec<(v1::Batch, Result<(), String>)>,
    },
    /// The end of a connection by a malicious server.
    Cut {
        /// The connection.
        connection: u64,
        /// The cause for the agent.
        cause: Disconnect,
    },
    /// The end of a session.
    End {
        /// The connection.
        connection: u64,
        /// Why; `None` if the agent closed the session.
        refusal: Option<Refusal>,
    },
}

/// A session with its oracle.
#[derive(Debug)]
struct Held {
    session: Session,
    oracle: Oracle,
    /// The latest time that the session can have read, by the wall clock and by the monotonic clock.
    latest: (Timestamp, Duration),
    /// The state of a mutant.
    faulty: FaultySession,
    /// The number of frames that a mutant has added to the session's frames, minus the frames that the mutant has dropped.
    added: i64,
}

impl ServerActor {
    /// Returns a server without a session, with this limit of operations in flight and these clocks, that starts now.
    pub fn new(
        mutant: Option<Mutant>,
        operations_max: usize,
        clock: Clock,
        started: Timestamp,
    ) -> Self {
        Self {
            mutant,
            operations_max,
            clock,
            started,
            sessions: BTreeMap::new(),
            registry: SessionRegistry::default(),
            connections: BTreeSet::new(),
            waiting: VecDeque::new(),
            told: Vec::new(),
            drained_at: None,
        }
    }

    /// Takes a new connection. Returns whether it is accepted.
    pub fn handle_connected(&mut self, connection: u64) -> bool {
        !self.is_draining() && self.connections.insert(connection)
    }

    /// Takes a frame.
    pub fn handle_frame(&mut self, now: Timestamp, connection: u64, request: v1::ReconcileRequest) {
        if !self.connections.contains(&connection) {
            return;
        }
        let (mutant, moment) = (self.mutant, self.moment(now));
        let reader = self.reader(connection, &request);
        if let (Some(held), Some(frame)) = (self.sessions.get_mut(&connection), &request.frame) {
            held.oracle.handle_frame(frame);
        }
        match self.sessions.get_mut(&reader) {
            Some(held) => held.handle_frame(moment, request, mutant),
            None => {
                if let Err(refusal) = self.open(moment, connection, request) {
                    self.end(connection, Some(refusal));
                }
            }
        }
    }

    /// Takes the end of the agent's half of a connection; `in_order` if the agent closed it.
    pub fn handle_disconnected(&mut self, now: Timestamp, connection: u64, in_order: bool) {
        let moment = self.moment(now);
        match self.sessions.get_mut(&connection) {
            Some(held) if in_order => held.session.handle_closed(moment),
            Some(_) | None => self.forget(connection),
        }
    }

    /// Starts a drain.
    pub fn handle_drain(&mut self, now: Timestamp) {
        self.drained_at.get_or_insert(now + DRAIN_DEADLINE);
        let moment = self.moment(now);
        for held in self.sessions.values_mut() {
            held.session.handle_drain(moment);
        }
    }

    /// Handles timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        let moment = self.moment(now);
        for held in self.sessions.values_mut() {
            if held.session.poll_timeout() <= moment.monotonic {
                held.session.handle_timeout(moment);
            }
        }
        if self.drained_at.is_some_and(|at| at <= now) {
            let left: Vec<_> = self.sessions.keys().copied().collect();
            for connection in left {
                self.end(connection, Some(draining()));
            }
        }
    }

    /// Returns the next output on one of these connections.
    pub fn poll(&mut self, now: Timestamp, is_of: impl Fn(u64) -> bool) -> Option<Sent> {
        let (mutant, moment) = (self.mutant, self.moment(now));
        let mut ended = Vec::new();
        let waits = |waiting: &VecDeque<Sent>| waiting.iter().any(|it| is_of(it.connection()));
        let sessions = self.sessions.iter_mut();
        for (connection, held) in sessions.filter(|(connection, _)| is_of(**connection)) {
            if waits(&self.waiting) {
                break;
            }
            held.note_time(moment);
            match held.session.poll_frame(moment) {
                Some(frame) => self.waiting.extend(held.send(*connection, frame, mutant)),
                None => {
                    let end = held.session.poll_end();
                    ended.extend(end.map(|end| (*connection, told_end(mutant, end))));
                }
            }
            while let Some(report) = held.session.poll_report() {
                let told = told(&report).map(|it| (*connection, it));
                let is_quiet = mutant == Some(Mutant::KeepEndsQuiet);
                self.told.extend(told.filter(|_| !is_quiet));
            }
        }
        for (connection, end) in ended {
            self.end(
                connection,
                match end {
                    End::Closed => None,
                    End::Refused(refusal) => Some(refusal),
                },
            );
        }
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|it| is_of(it.connection()))?;
        self.waiting.remove(next)
    }

    /// Returns the notices to people since the last call.
    pub fn take_told(&mut self) -> Vec<(u64, Told)> {
        std::mem::take(&mut self.told)
    }

    /// Returns when [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let sessions = self.sessions.values();
        let due = sessions.map(|held| Timestamp::UNIX_EPOCH + held.session.poll_timeout());
        let due = due.map(|due| self.clock.when_monotonic(due));
        due.chain(self.drained_at).min()
    }

    /// Returns whether the server drains and its process may end.
    pub fn is_drained(&self) -> bool {
        self.is_draining() && self.sessions.is_empty() && self.waiting.is_empty()
    }

    /// Returns the number of live sessions on these connections.
    pub fn session_count(&self, is_of: impl Fn(u64) -> bool) -> usize {
        let connections = self.sessions.keys();
        connections.filter(|it| is_of(**it)).count()
    }

    /// Returns the number of batches in flight.
    pub fn batches_in_flight(&self) -> usize {
        let sessions = self.sessions.values();
        sessions
            .map(|held| held.session.stats().sizes.batches_in_flight)
            .sum()
    }

    /// A moment of the world by the clocks of the server.
    fn moment(&self, now: Timestamp) -> Now {
        let wall = self.clock.wall(now).as_nanosecond();
        let since = self.clock.monotonic(now).as_nanosecond();
        Now {
            wall: decree_core::Timestamp(i64::try_from(wall).unwrap_or(i64::MAX)),
            monotonic: Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX)),
        }
    }

    const fn is_draining(&self) -> bool {
        self.drained_at.is_some()
    }

    fn open(
        &mut self,
        now: Now,
        connection: u64,
        first: v1::ReconcileRequest,
    ) -> Result<(), Refusal> {
        let config = config(self.operations_max);
        let mut first = first;
        if self.mutant == Some(Mutant::LeaveCreatesOpen)
            && let Some(request::Frame::Hello(hello)) = &mut first.frame
        {
            hello.options.get_or_insert_default().create_back_off = Some(false);
        }
        let mut session = Session::open(now, config, session_id(connection), first)?;
        let superseded = self.register(connection, &session)?;
        if let Some((older, refusal)) = superseded
            && self.mutant != Some(Mutant::IgnoreSupersession)
        {
            self.end(older.handle, Some(refusal));
        }
        let identity = self.registered(session.identity());
        if let Some((left, ago)) = self.registry.take(now.monotonic, &identity) {
            session.inherit(now, left, ago);
        }
        let held = Held {
            session,
            oracle: Oracle::default(),
            latest: (wall(now), now.monotonic),
            faulty: FaultySession::default(),
            added: 0,
        };
        self.sessions.insert(connection, held);
        Ok(())
    }

    /// The connection of the session that reads a frame: the connection of the frame, unless a mutant confuses clusters.
    fn reader(&self, connection: u64, request: &v1::ReconcileRequest) -> u64 {
        let is_mistaken = matches!(
            (self.mutant, &request.frame),
            (
                Some(Mutant::MistakeClusterOfEvents),
                Some(request::Frame::Events(_))
            ) | (
                Some(Mutant::MistakeClusterOfOutcomes),
                Some(request::Frame::Outcomes(_))
            )
        );
        let cluster = |held: &Held| held.session.identity().cluster_uid.clone();
        let own = self.sessions.get(&connection).map(cluster);
        let mut sessions = self.sessions.iter().filter(|_| is_mistaken);
        let other = sessions.find(|(_, held)| own.is_some() && own != Some(cluster(held)));
        other.map_or(connection, |(other, _)| *other)
    }

    /// Registers a session. Returns the session that it supersedes.
    fn register(
        &mut self,
        connection: u64,
        session: &Session,
    ) -> Result<Option<(Registered<u64>, Refusal)>, Refusal> {
        let identity = Arc::clone(session.identity());
        if self.mutant == Some(Mutant::ShareEpochs) {
            let epochs = self.registry.iter().map(|it| it.identity.epoch);
            let newest = epochs.max().unwrap_or(i64::MIN);
            if identity.epoch < newest {
                return Err(Refusal::EpochTooOld {
                    epoch: identity.epoch,
                    newest,
                });
            }
        }
        self.registry.register(Registered {
            identity: self.registered(&identity),
            handle: connection,
        })
    }

    /// The identity under which a session is registered.
    fn registered(&self, identity: &Arc<SessionIdentity>) -> Arc<SessionIdentity> {
        match self.mutant {
            Some(Mutant::KeyByClusterName) => Arc::new(SessionIdentity {
                cluster_uid: identity.cluster_name.clone(),
                ..SessionIdentity::clone(identity)
            }),
            Some(_) | None => Arc::clone(identity),
        }
    }

    fn end(&mut self, connection: u64, refusal: Option<Refusal>) {
        self.forget(connection);
        self.waiting.push_back(Sent::End {
            connection,
            refusal,
        });
    }

    fn forget(&mut self, connection: u64) {
        self.connections.remove(&connection);
        if let Some(held) = self.sessions.remove(&connection) {
            let identity = self.registered(held.session.identity());
            self.registry.remove(&identity);
            if self.mutant != Some(Mutant::ForgetAtNewSession) {
                let (left, (_, at)) = (held.session.leave(), held.latest);
                self.registry.keep(at, &identity, left);
            }
        }
    }
}

impl Sent {
    pub(super) const fn connection(&self) -> u64 {
        match self {
            Self::Frame { connection, .. }
            | Self::Cut { connection, .. }
            | Self::End { connection, .. } => *connection,
        }
    }
}

impl Held {
    fn handle_frame(&mut self, now: Now, request: v1::ReconcileRequest, mutant: Option<Mutant>) {
        let faulty = mutant.zip(request.frame.as_ref());
        if faulty.is_some_and(|(mutant, frame)| FaultySession::forgets(mutant, frame)) {
            self.session.inherit(now, Ledger::default(), Duration::ZERO);
        }
        let faulty = faulty.map(|(mutant, frame)| self.faulty.read(mutant, frame));
        let Some(frames) = faulty else {
            return self.session.handle_frame(now, request);
        };
        for frame in frames {
            let request = v1::ReconcileRequest {
                sequence: 0,
                frame: Some(frame),
            };
            self.session.handle_frame(now, request);
        }
    }

    fn send(
        &mut self,
        connection: u64,
        mut frame: v1::ReconcileResponse,
        mutant: Option<Mutant>,
    ) -> Vec<Sent> {
        frame.sequence = frame.sequence.saturating_add_signed(self.added);
        if mutant.is_some_and(|mutant| !self.faulty.write(mutant, &mut frame)) {
            self.added -= 1;
            return Vec::new();
        }
        let batches = self.judge(&frame);
        let twice = mutant == Some(Mutant::SendBatchTwice)
            && !batches.is_empty()
            && batches.iter().all(|(_, verdict)| verdict.is_ok());
        let again = twice.then(|| {
            self.added += 1;
            let frame = repeated(&frame);
            let batches = self.judge(&frame);
            Sent::Frame {
                connection,
                frame,
                batches,
            }
        });
        let first = Sent::Frame {
            connection,
            frame,
            batches,
        };
        [first].into_iter().chain(again).collect()
    }

    /// Notes the time. If the wall clock of a session was set back, the time continues no faster than real time.
    fn note_time(&mut self, now: Now) {
        let (latest, at) = self.latest;
        let elapsed = now.monotonic.saturating_sub(at);
        self.latest = (wall(now).max(latest + elapsed), now.monotonic);
    }

    /// Judges the batches of a frame, each before the oracle notes it.
    fn judge(&mut self, frame: &v1::ReconcileResponse) -> Vec<(v1::Batch, Result<(), String>)> {
        let Some(response::Frame::Batches(batches)) = &frame.frame else {
            return Vec::new();
        };
        let judged = batches.batches.iter().map(|batch| {
            let verdict = self.oracle.judge(self.latest.0, batch);
            self.oracle.note_batch(batch);
            (batch.clone(), verdict)
        });
        judged.collect()
    }
}

/// Returns the id of the session on a connection.
pub fn session_id(connection: u64) -> String {
    format!("session-{connection}")
}

/// The end of a session as a mutant reports it.
fn told_end(mutant: Option<Mutant>, end: End) -> End {
    match end {
        End::Refused(Refusal::OutcomesMissing(_)) if mutant == Some(Mutant::EndWithoutReason) => {
            End::Closed
        }
        End::Closed | End::Refused(_) => end,
    }
}

fn config(operations_in_flight_max: usize) -> Config {
    Config {
        frame_bytes_max: 1 << 20,
        objects_max: 1_000_000,
        operations_in_flight_max,
        drain_deadline: DRAIN_DEADLINE,
        reconnect_after: Duration::from_millis(500),
        ..session_config()
    }
}

fn wall(now: Now) -> Timestamp {
    Timestamp::from_nanosecond(now.wall.0.into()).unwrap_or_default()
}

const fn draining() -> Refusal {
    Refusal::Draining {
        reconnect_after: Duration::from_millis(500),
    }
}
