//! Text in lines that fit a terminal, of at most 80 columns, without escape sequences.

use std::io::{self, Write};

use crate::streams::Io;

/// The maximum width of a line.
pub(crate) const COLUMNS: usize = 80;
/// The additional indentation of the rest of a broken line.
const HANGING: usize = 4;

/// Writes lines of text that fit the terminal, and flushes.
pub(crate) fn say(text: &str, io: &mut Io<'_>) -> io::Result<()> {
    write(text, columns(io), io.stdout)?;
    io.stdout.flush()
}

/// Writes lines of text that fit `columns`.
pub(crate) fn write(text: &str, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let lines = text.split('\n').map(runtime::escaped);
    let mut lines = lines.flat_map(|line| wrap(&line, columns));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

pub(crate) fn columns(io: &Io<'_>) -> usize {
    (io.terminal)().map_or(COLUMNS, |terminal| terminal.columns.min(COLUMNS))
}

/// Breaks a line at spaces to fit into `columns`, if its words do.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mut words = text.split(' ');
    let mut lines = Vec::new();
    let mut current = " ".repeat(indent) + words.next().unwrap_or_default();
    for word in words {
        if current.chars().count() + 1 + word.chars().count() > columns {
            let rest = " ".repeat(indent + HANGING) + word;
            lines.push(std::mem::replace(&mut current, rest));
        } else {
            current.push(' ');
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}
