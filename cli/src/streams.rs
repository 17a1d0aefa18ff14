//! The streams of a process, as a command is given them.

use std::io::{Read, Write};

/// The streams of a process.
pub struct Io<'a> {
    /// Standard input; read where a file is `-`.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Whether standard output is a terminal, that is, whether a person may be reading along.
    pub terminal: bool,
    /// Whether who reads along can show more than ASCII.
    pub utf8: bool,
}
