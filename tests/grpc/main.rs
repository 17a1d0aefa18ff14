//! The server over real gRPC on loopback: the rules of docs/protocol.md that show there, and every row of its tables.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "an answer that was not expected is printed, whichever it is"
)]

mod access;
mod agent;
mod bad_fields;
mod console;
mod decide;
mod drain;
mod gone;
mod inspection;
mod key_server;
mod limits;
mod opening;
mod places;
mod probes;
mod refusal;
mod running;
mod session;
mod simulate_cluster;
mod stale;
mod tls;
mod tokens;
mod watch;
mod web;
