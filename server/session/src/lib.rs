//! One session with an agent, from its Hello to its end: a machine of frames and times.
//!
//! # Theory of operation
//!
//! ```text
//!  handle_frame ──▶ frame_reader ──▶ state: controller, timeline, shadow ──▶ poll_report   what the shell logs and counts
//!  handle_timeout        │                     │
//!  handle_drain          ▼                     ▼
//!  handle_closed      Refusal         notices, batches, heartbeat ──▶ poll_frame ──▶ poll_end
//! ```
//!
//! [`Session::open`] reads the Hello. `handle_*` records its input and decides nothing; [`Session::poll_frame`] decides, and returns one
//! numbered frame at a time; [`Session::poll_timeout`] says when to come back. A caller that has taken all frames asks
//! [`Session::poll_end`] whether that was all. Inspection calls `list`, `describe`, `surroundings`, `differences`
//! or `summarize`, which change nothing.
//!
//! [`SessionRegistry`] holds which session of a cluster and shard is the live one. [`wire`] is the only place where messages of the
//! contract become values of the core and back.
//!
//! **Invariant:** a session is a function of its configuration, its id, and the frames and times that it is given: the same inputs
//! give the same frames.
//! **Invariant:** availability and backoff follow the wall clock, heartbeat and silence the monotonic one ([`Now`]): a wall clock that
//! is set ends no session.
//! **Invariant:** a frame that breaks the protocol ends its session with a [`Refusal`]; a bad object harms itself alone.
//! **Invariant:** nothing is sent after a refusal, and no batch after a Drain.
//!
//! Deliberately outside: sockets, tasks, logs and metrics (there are [`SessionReport`]s), what a status of gRPC looks like, and the deadline for the
//! Hello: before it there is no session.

mod awaited;
mod batches;
mod cause;
mod causes;
mod config;
mod frame_reader;
mod hello;
mod incoming;
mod now;
mod query;
mod refusal;
mod registry;
mod rejections;
mod report;
mod reported_faults;
mod scale_downs;
mod session;
mod shadow;
mod state;
mod timeline;
pub mod wire;

pub use config::Config;
pub use hello::{PROTOCOL, SessionIdentity};
pub use incoming::IncomingFrame;
pub use now::Now;
pub use refusal::{Refusal, summary};
pub use registry::{Registered, SessionRegistry};
pub use rejections::VIOLATIONS_MAX;
pub use report::{Fault, SessionReport, Stats};
pub use session::{End, Session};
pub use wire::MalformedFrame;
