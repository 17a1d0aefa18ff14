//! A state of a bounded world: the states of its machines, by number, and the messages in flight.

use std::collections::VecDeque;

use agent_core::{
    api::{CallId, Kind},
    watch::WatchId,
};
use jiff::Timestamp;

use super::store::Id;

/// A state of the world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The time.
    pub now: Timestamp,
    /// The API server.
    pub api: Id,
    /// The Lease on the API server.
    pub lease: Id,
    /// The processes of agents, by place.
    pub agents: Vec<Process>,
    /// The servers, by place.
    pub servers: Vec<Server>,
    /// The connections, oldest first.
    pub links: Vec<Link>,
    /// The writes without a waiting agent that may still take effect.
    pub orphans: Vec<Orphan>,
    /// The remaining acts of users, by place.
    pub acts: Vec<bool>,
    /// The number of connections that may still break.
    pub broken_connections: u8,
    /// The number of answers that may still be lost.
    pub lost_answers: u8,
    /// The number of remaining pauses.
    pub pauses: u8,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Its machines.
    pub machines: Id,
    /// The number of remaining deaths.
    pub crashes: u8,
}

/// A process that acts as the agent, or stands by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The number of the process at its place.
    pub life: u8,
    /// The number of remaining deaths.
    pub crashes: u8,
    /// The end of its pause, if it is stopped.
    pub paused: Option<Timestamp>,
    /// Its part in the contest for the Lease.
    pub lease: Id,
    /// Its Lease request.
    pub asked: Option<Asked>,
    /// Its agent, once it leads.
    pub agent: Option<Id>,
    /// Whether it requests a connection.
    pub dials: bool,
    /// The number of its connections.
    pub dialled: u8,
    /// The calls without an answer, oldest first.
    pub calls: Vec<Call>,
    /// The requested list of each kind.
    pub lists: [Option<Listing>; 2],
    /// The pending watch events since the last list, of each kind.
    pub streams: [Option<Stream>; 2],
}

/// A Lease request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// The request is in flight.
    Sent(Id),
    /// The answer is in flight.
    Answered(Id),
}

/// A call of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its number.
    pub id: CallId,
    /// The request.
    pub request: Id,
    /// The progress.
    pub place: Place,
}

/// The progress of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The call waits for the renewal of the Lease.
    Held,
    /// The call is in flight, with this deadline.
    Sent(Timestamp),
    /// The answer is in flight.
    Answered(Id),
}

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// The request is in flight.
    Sent(WatchId),
    /// The list is in flight.
    Answered(WatchId, Id),
}

/// The pending events of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The watch; `None` before the agent has opened it.
    pub watch: Option<WatchId>,
    /// The pending events.
    pub events: VecDeque<Id>,
}

/// A write without a waiting agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Orphan {
    /// The last time at which the write can take effect.
    pub deadline: Timestamp,
    /// The request.
    pub request: Id,
}

/// A connection. Each direction is in order, and drops everything for a half that has left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// Its number.
    pub number: u64,
    /// The place of the agent; `None` once it has left the connection.
    pub agent: Option<usize>,
    /// The place of the server; `None` once it has left the connection.
    pub server: Option<usize>,
    /// The frames to the server; `None` for the end.
    pub to_server: VecDeque<Option<Id>>,
    /// The messages in flight to the agent.
    pub to_agent: VecDeque<ToAgent>,
}

/// A message in flight to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToAgent {
    /// A frame.
    Frame(Id),
    /// The end of the connection.
    End(Id),
}

// === impl State ===

impl State {
    /// Returns the connection of an agent.
    pub fn link_of(&mut self, agent: usize) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.agent == Some(agent))
    }

    /// Returns the connection of this number.
    pub fn link(&mut self, number: u64) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.number == number)
    }

    /// Adds an event to all watches of a kind.
    pub fn tell(&mut self, kind: Kind, event: Id) {
        for process in &mut self.agents {
            if let Some(stream) = &mut process.streams[kind as usize] {
                stream.events.push_back(event);
            }
        }
    }

    /// Removes connections that both halves have left.
    pub fn forget_links(&mut self) {
        self.links
            .retain(|link| link.agent.is_some() || link.server.is_some());
    }
}

// === impl Link ===

impl Link {
    /// Returns whether frames of the agent are lost.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.server.is_none() || self.to_server.back() == Some(&None)
    }

    /// Breaks the connection: everything in flight is lost, and each half sees the end.
    pub fn break_off(&mut self, end: Id) {
        self.to_server = [None].into();
        self.to_agent = [ToAgent::End(end)].into();
    }

    /// Lets the agent leave: of everything in flight to the server, only the end arrives.
    pub fn leave_agent(&mut self) {
        self.agent = None;
        self.to_agent.clear();
        self.to_server = [None].into();
    }

    /// Lets the server leave without notice: of everything in flight to the agent, only the end arrives.
    pub fn leave_server(&mut self, end: Id) {
        self.server = None;
        self.to_server.clear();
        self.to_agent = [ToAgent::End(end)].into();
    }
}

// === impl Process ===

impl Process {
    /// Returns the process that replaces another.
    #[must_use]
    pub const fn new(life: u8, crashes: u8, lease: Id) -> Self {
        Self {
            life,
            crashes,
            paused: None,
            lease,
            asked: None,
            agent: None,
            dials: false,
            dialled: 0,
            calls: Vec::new(),
            lists: [None, None],
            streams: [None, None],
        }
    }
}
