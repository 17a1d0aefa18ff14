//! What both programs and the command line need beside their task: configuration, logs, shutdown, the admin endpoint, connections,
//! admission.
//!
//! # Theory of operation
//!
//! A binary calls [`config::parse`] for its arguments, [`LogArgs::init`] for its logs, and [`shutdown::on_signal`] for a token
//! that the first SIGTERM or SIGINT cancels. The binary opens its sockets with [`listen`] and [`ListenAddr::open`], and serves
//! [`admin::router`] with the registry of its metrics. It sets the [`Readiness`] when it becomes ready and when it drains.
//! [`failure::report`] reports an error that ends the process. [`transport`] connects the programs, and says who the peer is.
//! [`admission`] bounds the work of peers. Everything else is part of the binary.
//!
//! **Invariant:** only the log subscriber and the panic hook are global, so a test may run many shells in one
//! process.
//!
//! Deliberately outside: gRPC, Kubernetes, and the meaning of metrics.

pub mod admin;
pub mod admission;
pub mod build_info;
pub mod config;
mod escape;
pub mod failure;
mod fault;
pub mod file;
mod listen;
mod log;
pub mod metrics;
pub mod process;
pub mod shutdown;
mod token_file;
pub mod transport;

pub use admin::Readiness;
pub use escape::{escaped, escaped_json, excerpt};
pub use fault::Fault;
pub use listen::{ListenAddr, ListenError, listen, socket_address};
pub use log::{Filter, Format, LogArgs};
pub use token_file::Token;
