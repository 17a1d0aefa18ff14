//! The end of a command: an exit code that scripts can branch on, and for people one line of cause and one of remedy.

use std::{io, process::ExitCode};

/// The exit code of a command. The codes are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done = 0,
    /// 1: a negative result: not found, goal not reached, output not written.
    No = 1,
    /// 2: the command or its input is wrong.
    Usage = 2,
    /// 3: the server cannot be reached, or the server or a session does not respond.
    Unreachable = 3,
    /// 4: the server refused.
    Refused = 4,
}

/// Why a command failed, and the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) cause: String,
    pub(crate) hint: Option<String>,
}

pub(crate) const HELP: &str = "\
Exit codes:
  0  success
  1  negative result: not found, goal not reached, output not written
  2  invalid command line or input
  3  the server cannot be reached, or the server or a session does not respond
  4  the server refused";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, cause: impl Into<String>) -> Self {
        Self {
            exit,
            cause: cause.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Output that cannot be written. It is no failure that a reader such as `head` closes the stream early.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let has_gone = error.kind() == io::ErrorKind::BrokenPipe;
        let exit = if has_gone { Exit::Done } else { Exit::No };
        Self::new(exit, format!("output cannot be written: {error}"))
    }
}
