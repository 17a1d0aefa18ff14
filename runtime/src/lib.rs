//! What both shells stand on: configuration, logs, shutdown and the admin endpoint.
//!
//! # Theory of operation
//!
//! A binary calls [`config::parse`] for its arguments, [`LogArgs::init`] for its logs, and [`shutdown::on_signal`] for a token
//! that is cancelled by the first SIGTERM or SIGINT. It opens its sockets with [`listen`] and [`ListenAddr::open`], serves
//! [`admin::router`] with a [`Readiness`] that it sets as it becomes ready and as it drains, and gives it the registry that its
//! metrics are in. What ends it too early it says with [`failure::report`]. Everything else is the binary's own.
//!
//! **Invariant:** nothing here is global but the log subscriber and the panic hook, so a test may run many shells in one
//! process.
//!
//! Deliberately outside: gRPC, Kubernetes, and what a metric means.

pub mod admin;
pub mod config;
pub mod environment;
mod exposition;
pub mod failure;
pub mod file;
mod listen;
mod log;
pub mod process;
pub mod shutdown;
mod token_file;

pub use admin::Readiness;
pub use listen::{ListenAddr, ListenAddrError, ListenError, listen};
pub use log::{Filter, FilterError, Format, LogArgs, LogError, escaped, excerpt};
pub use token_file::{Token, TokenFile, TokenFileError};
