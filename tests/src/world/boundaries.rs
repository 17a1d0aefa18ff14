//! The boundaries of operations: moments between two actions of a half, of the connection or of the API server.
//!
//! A world counts the boundaries that it passes. A strike says what dies at which of them.

use std::fmt;

use decree::v1::{reconcile_request::Frame as Request, reconcile_response::Frame as Response};

use super::happening::Happening;

/// One boundary: what is under way, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    /// A frame by its message, a call by its verb, or a part of a list and watch.
    pub what: &'static str,
    /// How far it is.
    pub moment: Moment,
}

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The agent has checked the guard of a call, and has not sent it.
    Checked,
    /// It is on its way.
    Sent,
    /// It has arrived, and nobody has looked at it.
    Received,
    /// The API server has executed a call, and has not answered.
    Committed,
    /// Its receiver has taken it in, and done nothing else.
    Handled,
}

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crash {
    /// The server process that the agent is connected with.
    Server,
    /// The agent process.
    Agent,
    /// Both processes.
    Both,
    /// The connection.
    Connection,
}

/// What becomes of the frames, and of the calls of a dead agent, that are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InFlight {
    /// They arrive.
    Delivered,
    /// They are lost.
    Lost,
}

/// A crash at one boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Strike {
    /// The boundary, counted from 0.
    pub boundary: usize,
    /// What dies.
    pub crash: Crash,
    /// What becomes of that which is on its way.
    pub in_flight: InFlight,
}

/// Whose operation something belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Party {
    /// The agent of a life.
    Life(u64),
    /// The agent of a connection.
    Connection(u64),
}

/// The boundaries that a world has passed, and what happens at one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundaries {
    count: usize,
    passed: Option<Vec<Boundary>>,
    strike: Option<Strike>,
    struck: Option<Boundary>,
}

// === impl Crash ===

impl Crash {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Server, Self::Agent, Self::Both, Self::Connection];
}

// === impl InFlight ===

impl InFlight {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Delivered, Self::Lost];
}

// === impl Strike ===

impl Strike {
    /// Returns all crashes at a boundary.
    pub fn at(boundary: usize) -> impl Iterator<Item = Self> {
        let crashes = Crash::ALL.into_iter();
        let crashes = crashes.flat_map(|crash| InFlight::ALL.map(|in_flight| (crash, in_flight)));
        crashes.map(move |(crash, in_flight)| Self {
            boundary,
            crash,
            in_flight,
        })
    }
}

// === impl Boundary ===

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = match self.moment {
            Moment::Checked => "checked",
            Moment::Sent => "sent",
            Moment::Received => "received",
            Moment::Committed => "committed",
            Moment::Handled => "handled",
        };
        write!(f, "{} {moment}", self.what)
    }
}

// === impl Boundaries ===

impl Boundaries {
    /// Begins to note the boundaries that are passed.
    pub(super) fn record(&mut self) {
        self.passed = Some(Vec::new());
    }

    /// Returns the boundaries that were passed, if they are noted.
    pub(super) fn passed(&self) -> &[Boundary] {
        self.passed.as_deref().unwrap_or_default()
    }

    /// Plans a crash.
    pub(super) const fn plan(&mut self, strike: Strike) {
        self.strike = Some(strike);
    }

    /// Returns the boundary at which the planned crash happened, once it has.
    pub(super) const fn struck(&self) -> Option<Boundary> {
        self.struck
    }

    /// Passes a boundary. Returns what dies there.
    pub(super) fn pass(&mut self, boundary: Boundary) -> Option<Crash> {
        let number = self.count;
        self.count += 1;
        if let Some(passed) = &mut self.passed {
            passed.push(boundary);
        }
        let strike = self.strike.filter(|strike| strike.boundary == number)?;
        self.struck = Some(boundary);
        Some(strike.crash)
    }
}

// === impl Happening ===

impl Happening {
    /// Returns what passes a boundary with this happening, and whose operation it is; `None` where it is no part of an operation.
    pub(super) const fn operation(&self) -> Option<(&'static str, Party)> {
        let (what, party) = match self {
            Self::LeaseAsked { life, .. } => ("Lease request", Party::Life(*life)),
            Self::LeaseAnswered { life, .. } => ("Lease response", Party::Life(*life)),
            Self::Connecting { connection } => ("connection", Party::Connection(*connection)),
            Self::ToServer { connection, frame } => match to_server(frame.frame.as_ref()) {
                Some(what) => (what, Party::Connection(*connection)),
                None => return None,
            },
            Self::ToAgent { connection, frame } => match to_agent(frame.frame.as_ref()) {
                Some(what) => (what, Party::Connection(*connection)),
                None => return None,
            },
            Self::CallArrives { life, call, .. } => (call.request.verb(), Party::Life(*life)),
            Self::Reply { life, .. } => ("response", Party::Life(*life)),
            Self::ListArrives { life, .. } => ("list request", Party::Life(*life)),
            Self::Listed { life, .. } => ("list response", Party::Life(*life)),
            Self::WatchOpens { life, .. } => ("watch request", Party::Life(*life)),
            Self::WatchTells { life, .. } => ("watch event", Party::Life(*life)),
            Self::ServerStarts { .. }
            | Self::AgentStarts
            | Self::AgentWakes { .. }
            | Self::ServerSeesEnd { .. }
            | Self::AgentSeesEnd { .. }
            | Self::CallLeaves { .. }
            | Self::WatchEnds { .. }
            | Self::Act { .. }
            | Self::Fault(_) => return None,
        };
        Some((what, party))
    }
}

/// Returns the message of a frame of the agent; signs of life are no part of an operation.
const fn to_server(frame: Option<&Request>) -> Option<&'static str> {
    match frame {
        Some(Request::Hello(_)) => Some("Hello"),
        Some(Request::SnapshotBegin(_)) => Some("SnapshotBegin"),
        Some(Request::SnapshotObjects(_)) => Some("SnapshotObjects"),
        Some(Request::SnapshotEnd(_)) => Some("SnapshotEnd"),
        Some(Request::Events(_)) => Some("Events"),
        Some(Request::Outcomes(_)) => Some("Outcomes"),
        Some(Request::Heartbeat(_)) | None => None,
    }
}

/// Returns the message of a frame of the server.
const fn to_agent(frame: Option<&Response>) -> Option<&'static str> {
    match frame {
        Some(Response::Welcome(_)) => Some("Welcome"),
        Some(Response::Batches(_)) => Some("Batches"),
        Some(Response::Resync(_)) => Some("Resync"),
        Some(Response::Rejection(_)) => Some("Rejection"),
        Some(Response::Drain(_)) => Some("Drain"),
        Some(Response::Heartbeat(_)) | None => None,
    }
}
