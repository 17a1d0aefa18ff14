//! One session with an agent, from its Hello to its end: a state machine of frames and times.
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
//! [`Session::open`] reads the Hello. `handle_*` records its input without a decision. [`Session::poll_frame`] decides, and returns one
//! numbered frame at a time. [`Session::poll_timeout`] says when to call again. After the last frame, [`Session::poll_end`] says whether
//! the session has ended. Inspection calls `stats`, `list`, `describe`, `differences` or `controller`, which change nothing.
//!
//! [`SessionRegistry`] holds the live session of each cluster and shard. [`wire`] is the only place where messages of the contract become
//! values of the core and back.
//!
//! **Invariant:** a session is a function of its configuration, its id, and its frames and times: the same inputs give the same frames.
//! **Invariant:** availability and backoff follow the wall clock, heartbeat and silence the monotonic clock ([`Now`]). A change of the wall
//! clock ends no session.
//! **Invariant:** a frame that breaks the protocol ends its session with a [`Refusal`]; a bad object affects only itself.
//! **Invariant:** the server sends nothing after a refusal, and no batch after a Drain.
//!
//! Deliberately outside: sockets, tasks, logs and metrics (there are [`SessionReport`]s), the gRPC status of a refusal, and the deadline
//! for the Hello, before which there is no session.

mod awaited;
mod cause;
mod config;
mod frame_reader;
mod held_message;
mod hello;
mod incoming;
mod now;
mod query;
pub mod recording;
mod refusal;
mod registry;
mod rejections;
mod report;
mod session;
mod shadow;
mod state;
mod timeline;
pub mod wire;

pub use config::Config;
pub use hello::{PROTOCOL, SessionIdentity};
pub use incoming::IncomingFrame;
pub use now::Now;
pub use query::summary_without_session;
pub use refusal::Refusal;
pub use registry::{Registered, SessionRegistry};
pub use rejections::VIOLATIONS_MAX;
pub use report::{Fault, SessionReport, Stats};
pub use session::{End, Session};
pub use wire::MalformedFrame;
