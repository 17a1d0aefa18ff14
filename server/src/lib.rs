//! The decision server.

pub mod wire;
