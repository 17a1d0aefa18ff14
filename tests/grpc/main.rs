//! The server over real gRPC on loopback: every rule of docs/protocol.md, and every row of its tables.

mod agent;
mod hello;
mod objects;
mod refusal;
mod running;
mod session;
mod snapshot;
mod supersession;
