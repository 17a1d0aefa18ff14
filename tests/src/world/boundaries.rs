//! The boundaries of operations: moments between two actions of a half, of the connection or of the API server.
//!
//! A world counts the boundaries that it passes. A planned crash has a boundary.

use std::fmt;

use decree_api::v1::{reconcile_request::Frame as Request, reconcile_response::Frame as Response};

use super::happening::Happening;

/// One boundary: an operation, and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boundary {
    /// A frame by its message, a call by its verb, or a part of a list and watch.
    pub what: &'static str,
    /// The progress.
    pub moment: Moment,
}

/// The progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The agent has checked the guard of a call, and has not sent the call.
    Checked,
    /// The message is in flight.
    Sent,
    /// The message has arrived, and is not processed.
    Received,
    /// The API server has executed a call, and has not answered.
    Committed,
    /// The receiver has processed the message, and done nothing else.
    Handled,
}

/// The part that dies.
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

/// The fate of the frames in flight, and of the calls of a dead agent in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InFlight {
    /// The messages arrive.
    Delivered,
    /// The messages are lost.
    Lost,
}

/// A crash at one boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedCrash {
    /// The boundary, counted from 0.
    pub boundary: usize,
    /// The crash.
    pub crash: Crash,
    /// The fate of the messages in flight.
    pub in_flight: InFlight,
}

/// The owner of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Party {
    /// The agent of a life.
    Life(u64),
    /// The agent of a connection.
    Connection(u64),
}

/// The passed boundaries of a world, and the planned crash at one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Boundaries {
    count: usize,
    passed: Option<Vec<Boundary>>,
    planned: Option<PlannedCrash>,
    crashed: Option<Boundary>,
}

impl Crash {
    /// All crashes.
    pub const ALL: [Self; 4] = [Self::Server, Self::Agent, Self::Both, Self::Connection];
}

impl InFlight {
    /// Both fates.
    pub const ALL: [Self; 2] = [Self::Delivered, Self::Lost];
}

impl PlannedCrash {
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

impl Boundaries {
    pub(super) fn record(&mut self) {
        self.passed = Some(Vec::new());
    }

    /// The passed boundaries, if recorded.
    pub(super) fn passed(&self) -> &[Boundary] {
        self.passed.as_deref().unwrap_or_default()
    }

    pub(super) const fn plan(&mut self, planned: PlannedCrash) {
        self.planned = Some(planned);
    }

    /// The boundary of the planned crash, once it has happened.
    pub(super) const fn crashed(&self) -> Option<Boundary> {
        self.crashed
    }

    /// Passes a boundary. Returns the crash there.
    pub(super) fn pass(&mut self, boundary: Boundary) -> Option<Crash> {
        let number = self.count;
        self.count += 1;
        if let Some(passed) = &mut self.passed {
            passed.push(boundary);
        }
        let planned = self.planned.filter(|planned| planned.boundary == number)?;
        self.crashed = Some(boundary);
        Some(planned.crash)
    }
}

impl Happening {
    /// The message of this event that passes a boundary, and the owner of its operation; `None` if it is no part of an operation.
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
            Self::CostAnswered { life, .. } => ("cost", Party::Life(*life)),
            Self::ListArrives { life, .. } => ("list request", Party::Life(*life)),
            Self::Listed { life, .. } => ("list response", Party::Life(*life)),
            Self::WatchOpens { life, .. } => ("watch request", Party::Life(*life)),
            Self::WatchTells { life, .. } => ("watch event", Party::Life(*life)),
            Self::ServerStarts { .. }
            | Self::AgentStarts
            | Self::AgentWakes { .. }
            | Self::ServerSeesEnd { .. }
            | Self::AgentSeesEnd { .. }
            | Self::WatchEnds { .. }
            | Self::NodesRead { .. }
            | Self::Act { .. }
            | Self::Fault(_) => return None,
        };
        Some((what, party))
    }
}

/// The message of a frame of the agent; heartbeats are no part of an operation.
const fn to_server(frame: Option<&Request>) -> Option<&'static str> {
    match frame {
        Some(Request::Hello(_)) => Some("Hello"),
        Some(Request::SnapshotBegin(_)) => Some("SnapshotBegin"),
        Some(Request::SnapshotObjects(_)) => Some("SnapshotObjects"),
        Some(Request::SnapshotEnd(_)) => Some("SnapshotEnd"),
        Some(Request::Events(_)) => Some("Events"),
        Some(Request::Outcomes(_)) => Some("Outcomes"),
        Some(Request::Nodes(_)) => Some("Nodes"),
        Some(Request::Costs(_)) => Some("Costs"),
        Some(Request::Heartbeat(_)) | None => None,
    }
}

const fn to_agent(frame: Option<&Response>) -> Option<&'static str> {
    match frame {
        Some(Response::Welcome(_)) => Some("Welcome"),
        Some(Response::Batches(_)) => Some("Batches"),
        Some(Response::Resync(_)) => Some("Resync"),
        Some(Response::Rejection(_)) => Some("Rejection"),
        Some(Response::Drain(_)) => Some("Drain"),
        Some(Response::CostsWanted(_)) => Some("CostsWanted"),
        Some(Response::Heartbeat(_)) | None => None,
    }
}
