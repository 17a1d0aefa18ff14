//! The real machines of a server, one step at a time: its sessions, and the registry of the live sessions.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use decree::v1;
use jiff::Timestamp;
use server_session::{Config, End, Now, Refusal, Registered, Session, SessionRegistry};

use super::{
    bounds::Mutant,
    store::{Id, Interner, Messages},
};
use crate::{actors::disconnect, objects::session_config};

/// Longer than any search lasts: silent links are a matter of the drawn worlds.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3600);

/// An input of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A frame on a connection.
    Frame(u64, Id),
    /// The end of a connection.
    Ended(u64),
    /// A timer is due.
    Timeout,
}

/// An output of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame on a connection.
    Frame(u64, Id),
    /// The end of a connection by the server.
    End(u64, Id),
}

/// All visited states of servers, and their outputs.
#[derive(Debug)]
pub struct Servers {
    mutant: Option<Mutant>,
    states: Interner<Server>,
    steps: HashMap<(Id, Input, Timestamp), Step>,
}

type Step = (Id, Rc<[Output]>);

#[derive(Clone, Debug, Default)]
struct Server {
    sessions: BTreeMap<u64, Session>,
    registry: SessionRegistry<u64>,
}

// === impl Servers ===

impl Servers {
    /// Returns an empty set.
    #[must_use]
    pub fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            states: Interner::default(),
            steps: HashMap::new(),
        }
    }

    /// Returns a server that has just started.
    pub fn begin(&mut self) -> Id {
        self.states.intern(Server::default())
    }

    /// Gives an input to a server.
    pub fn step(
        &mut self,
        messages: &mut Messages,
        server: Id,
        input: Input,
        at: Timestamp,
    ) -> Step {
        if let Some(step) = self.steps.get(&(server, input, at)) {
            return step.clone();
        }
        let mut machine = Server::clone(self.states.get(server));
        let mut outputs = Vec::new();
        let now = moment(at);
        match input {
            Input::Frame(connection, frame) => {
                let frame = v1::ReconcileRequest::clone(messages.to_server.get(frame));
                let refusals = machine.hear(now, connection, frame, self.mutant);
                outputs.extend(refusals.into_iter().map(|it| end(it, messages)));
            }
            Input::Ended(connection) => machine.forget(connection),
            Input::Timeout => machine.sessions.values_mut().for_each(|session| {
                if session.poll_timeout() <= now.monotonic {
                    session.handle_timeout(now);
                }
            }),
        }
        drain(&mut machine, messages, now, &mut outputs);
        let step = (self.states.intern(machine), outputs.into());
        self.steps.insert((server, input, at), Step::clone(&step));
        step
    }

    /// Returns the deadline of a server.
    #[must_use]
    pub fn poll_timeout(&self, server: Id) -> Option<Timestamp> {
        let sessions = self.states.get(server).sessions.values();
        sessions
            .map(|session| Timestamp::UNIX_EPOCH + session.poll_timeout())
            .min()
    }

    /// Returns the number of sessions of a server.
    #[must_use]
    pub fn sessions(&self, server: Id) -> usize {
        self.states.get(server).sessions.len()
    }
}

// === impl Server ===

impl Server {
    /// Takes a frame. Returns the connections that end, and why.
    fn hear(
        &mut self,
        now: Now,
        connection: u64,
        frame: v1::ReconcileRequest,
        mutant: Option<Mutant>,
    ) -> Vec<(u64, Refusal)> {
        if let Some(session) = self.sessions.get_mut(&connection) {
            session.handle_frame(now, frame);
            return Vec::new();
        }
        match self.open(now, connection, frame) {
            Ok(Some((older, refusal))) if mutant != Some(Mutant::IgnoreSupersession) => {
                self.sessions.remove(&older);
                vec![(older, refusal)]
            }
            Ok(_) => Vec::new(),
            Err(refusal) => vec![(connection, refusal)],
        }
    }

    fn open(
        &mut self,
        now: Now,
        connection: u64,
        hello: v1::ReconcileRequest,
    ) -> Result<Option<(u64, Refusal)>, Refusal> {
        let session = Session::open(now, config(), format!("session-{connection}"), hello)?;
        let superseded = self.registry.register(Registered {
            identity: Arc::clone(session.identity()),
            handle: connection,
        })?;
        self.sessions.insert(connection, session);
        Ok(superseded.map(|(older, refusal)| (older.handle, refusal)))
    }

    fn forget(&mut self, connection: u64) {
        if let Some(session) = self.sessions.remove(&connection) {
            self.registry.remove(session.identity());
        }
    }
}

fn end((connection, refusal): (u64, Refusal), messages: &mut Messages) -> Output {
    Output::End(connection, messages.ends.intern(disconnect(Some(&refusal))))
}

/// Both clocks of a server show the time of the world.
fn moment(now: Timestamp) -> Now {
    let nanos = now.as_nanosecond();
    Now {
        wall: server_core::Timestamp(i64::try_from(nanos).unwrap_or(i64::MAX)),
        monotonic: Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)),
    }
}

fn config() -> Config {
    Config {
        frame_bytes_max: 1 << 20,
        heartbeat_interval: HEARTBEAT_INTERVAL,
        reconnect_after: Duration::from_millis(500),
        ..session_config()
    }
}

fn drain(server: &mut Server, messages: &mut Messages, now: Now, outputs: &mut Vec<Output>) {
    let mut ended = Vec::new();
    for (connection, session) in &mut server.sessions {
        while let Some(frame) = session.poll_frame(now) {
            outputs.push(Output::Frame(*connection, messages.to_agent.intern(frame)));
        }
        while session.poll_report().is_some() {}
        ended.extend(session.poll_end().map(|end| (*connection, end)));
    }
    for (connection, ending) in ended {
        server.forget(connection);
        if let End::Refused(refusal) = ending {
            outputs.push(end((connection, refusal), messages));
        }
    }
}
