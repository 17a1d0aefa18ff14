//! Recordings of sessions: the format, and the replay that decides again.
//!
//! # Theory of operation
//!
//! A session is a function of its configuration, its id, and its calls with their times. [`Encoder`] writes all of these down, and each
//! frame that the session answered. The module `reader` reads them back from any bytes. [`Replay`] constructs the same session, makes the same
//! calls, and returns each [`Difference`] between the recorded answers and the answers of this version.
//!
//! The format is `proto/decree/recording/v1`.
//!
//! **Invariant:** a recording holds no more than the wire: frames as the contract has them, and times.
//! **Invariant:** reading needs the memory of one record and of the session, whatever lengths the bytes claim.
//! **Invariant:** no bytes make a replay panic; a [`ReadError`] names the fault and its position.
//!
//! Deliberately outside: files, threads, and printed output.

mod encoder;
mod inherited;
mod output;
mod reader;
mod record;
mod replay;

pub use encoder::{Call, Encoder, EndReason, end};
pub use reader::{Ending, ReadError};
pub use replay::{Decisions, Difference, Input, RecordedCall, Replay, Summary};

#[cfg(test)]
mod tests;
