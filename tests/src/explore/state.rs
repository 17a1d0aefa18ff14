//! A state of a bounded world: the states of its machines, by number, and what is on its way between them.

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
    /// The Lease, as the API server keeps it.
    pub lease: Id,
    /// The processes of agents, by place.
    pub agents: Vec<Process>,
    /// The servers, by place.
    pub servers: Vec<Server>,
    /// The connections, oldest first.
    pub links: Vec<Link>,
    /// The writes that nobody waits for, and that may take effect yet.
    pub orphans: Vec<Orphan>,
    /// The acts of users that are still to come, by place.
    pub acts: Vec<bool>,
    /// How many connections may break yet.
    pub broken_connections: u8,
    /// How many answers may be lost yet.
    pub lost_answers: u8,
    /// How often an agent may be stopped yet.
    pub pauses: u8,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// Its machines.
    pub machines: Id,
    /// How often it may die yet.
    pub crashes: u8,
}

/// A process that acts as the agent, or stands by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Numbers the processes of this place.
    pub life: u8,
    /// How often it may die yet.
    pub crashes: u8,
    /// Until when it is stopped at most, if it is.
    pub paused: Option<Timestamp>,
    /// Its part in the contest for the Lease.
    pub lease: Id,
    /// What it asked of the Lease.
    pub asked: Option<Asked>,
    /// Its agent, once it leads.
    pub agent: Option<Id>,
    /// Whether it wants a connection.
    pub dials: bool,
    /// Numbers its connections.
    pub dialled: u8,
    /// The calls without an answer, oldest first.
    pub calls: Vec<Call>,
    /// The list that it asked for, of each kind.
    pub lists: [Option<Listing>; 2],
    /// What watches have to tell since the last list, of each kind.
    pub streams: [Option<Stream>; 2],
}

/// A command for the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// It is on its way.
    Sent(Id),
    /// The answer is on its way.
    Answered(Id),
}

/// A call of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// Its number.
    pub id: CallId,
    /// What is asked.
    pub request: Id,
    /// Where it is.
    pub place: Place,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// It waits for the Lease to be renewed.
    Held,
    /// It is on its way, until a deadline.
    Sent(Timestamp),
    /// Its answer is on its way.
    Answered(Id),
}

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// It is asked for.
    Sent(WatchId),
    /// It is on its way.
    Answered(WatchId, Id),
}

/// What a watch has to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The watch; `None` before the agent has opened it.
    pub watch: Option<WatchId>,
    /// What was not told yet.
    pub events: VecDeque<Id>,
}

/// A write that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Orphan {
    /// When it can take effect no more.
    pub deadline: Timestamp,
    /// What is asked.
    pub request: Id,
}

/// A connection. Each way is in order; a half that has gone is told nothing.
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
    /// What is on its way to the agent.
    pub to_agent: VecDeque<ToAgent>,
}

/// What is on its way to an agent.
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

    /// Tells all watches of a kind.
    pub fn tell(&mut self, kind: Kind, event: Id) {
        for process in &mut self.agents {
            if let Some(stream) = &mut process.streams[kind as usize] {
                stream.events.push_back(event);
            }
        }
    }

    /// Forgets connections that both halves have left.
    pub fn forget_links(&mut self) {
        self.links
            .retain(|link| link.agent.is_some() || link.server.is_some());
    }
}

// === impl Link ===

impl Link {
    /// Returns whether nothing that the agent sends arrives any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.server.is_none() || self.to_server.back() == Some(&None)
    }

    /// Lets the connection break: what is on its way is lost, and each half will see the end.
    pub fn break_off(&mut self, end: Id) {
        self.to_server = [None].into();
        self.to_agent = [ToAgent::End(end)].into();
    }

    /// Lets the agent leave: what is on its way to the server arrives no more, but for the end.
    pub fn leave_agent(&mut self) {
        self.agent = None;
        self.to_agent.clear();
        self.to_server = [None].into();
    }

    /// Lets the server leave without a word: what is on its way to the agent arrives no more, but for the end.
    pub fn leave_server(&mut self, end: Id) {
        self.server = None;
        self.to_server.clear();
        self.to_agent = [ToAgent::End(end)].into();
    }
}

// === impl Process ===

impl Process {
    /// Returns the process that begins in place of another.
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
