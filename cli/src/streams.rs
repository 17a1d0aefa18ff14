//! The streams of a process, as parameters of a command.

use std::io::{Read, Write};

use crate::paint::Paint;

/// The streams of a process.
pub struct Io<'a> {
    /// Standard input; read where a file is `-`.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Returns the number of characters in a line of the terminal on standard output; `None` if it is not a terminal.
    pub columns: fn() -> Option<usize>,
    /// Which streams show colors.
    pub colors: Colors,
}

/// The streams that show colors: terminals, unless something asks for plain text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colors {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

impl Io<'_> {
    pub(crate) const fn paint(&self) -> Paint {
        Paint::new(self.colors.stdout)
    }
}
