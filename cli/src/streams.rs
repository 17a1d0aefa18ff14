//! The streams of a process, as a command is given them.

use std::{
    io::{Read, Write},
    os::fd::OwnedFd,
};

use crate::paint::Paint;

/// The streams of a process.
pub struct Io<'a> {
    /// Standard input; read where a file is `-`.
    pub stdin: &'a mut dyn Read,
    /// The terminal that standard input is, whose keys can be read as they are pressed; `None` if it is none.
    pub keys: Option<OwnedFd>,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Returns the terminal that standard output is; `None` if it is none, so that no person reads along.
    pub terminal: fn() -> Option<Terminal>,
    /// Whether who reads along can show more than ASCII.
    pub utf8: bool,
    /// Which streams show colors.
    pub colors: Colors,
}

/// Which streams show colors: those that are terminals, if nothing asks for plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colors {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// A terminal, at a moment: its size may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// How many characters a line has.
    pub columns: usize,
    /// How many lines are shown.
    pub lines: usize,
    /// Whether text can be put where other text was.
    pub can_place: bool,
}

// === impl Io ===

impl Io<'_> {
    /// Returns how text on standard output is painted.
    pub(crate) const fn paint(&self) -> Paint {
        Paint::new(self.colors.stdout)
    }
}
