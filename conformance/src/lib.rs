//! Tests a server of any make against the rules of `docs/protocol.md`, from outside.
//!
//! # Theory of operation
//!
//! A case verifies one rule: it opens sessions of its own, each for a cluster that no other case has, says what an agent says or must not say, and
//! returns what it saw where that is not what the rule demands. Cases know nothing of each other, so they run at the same time; the slowest waits until a
//! silent session is given up. [`run`] gives a [`Score`], which prints as a table with a link to each rule.
//!
//! **Invariant:** a case sees the server through the contract alone, so it holds for servers of any make.
//! That something does *not* come is seen by what comes in its place: a pod that must be rejected follows, and its Rejection has to arrive first.

mod score;
mod server;

pub use score::{Row, Score};
pub use server::run;
