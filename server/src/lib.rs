//! The decision server: everything around `decree-core` that waits.
//!
//! # Theory of operation
//!
//! [`Server::bind`] opens the sockets, [`Server::serve`] serves them until its token is cancelled and then drains. A call of
//! `Reconcile` becomes a session: one task that owns one `server_session::Session`, feeds it the frames of the agent and sends
//! its output. Other tasks query a session by messages. Only its own task touches the session, so it needs no lock.
//! `Decide` runs the same core on the snapshot in the request.
//!
//! **Invariant:** a session harms no other session: its memory, queues and operations in flight are bounded, and a panic ends it alone.
//! **Invariant:** there is at most one live session for each cluster and shard, and its epoch is the newest seen alive.
//! **Invariant:** every method is reached through `access`, which identifies the caller and checks its permissions.
//! **Invariant:** other machines are let in only if peers prove who they are and a policy exists, unless `--insecure` waives that.
//! **Invariant:** every status but OK carries an `ErrorInfo` whose reason docs/protocol.md explains.
//! **Invariant:** a recorder that cannot keep up ends a recording, never a session.
//!
//! Deliberately outside: cluster credentials, persistent state other than recordings, and every decision.

mod access;
mod args;
mod background;
mod capacity;
mod clock;
mod cluster_change;
mod codec;
mod console;
mod decide;
mod error;
mod exposure;
mod gauges;
mod incoming;
mod inspection;
mod layers;
mod metrics;
mod page;
mod peer;
mod questions;
mod recorder;
mod registry;
mod serve;
mod service;
mod session;
mod shared;
mod visible;
mod watchers;
mod web;

pub use access::args::AccessArgs;
pub use args::{Args, Config, Limits, Recording};
pub use console::recording_page;
pub use error::DOMAIN;
pub use serve::{Addresses, ServeError, Server};
pub use server_session::wire;
