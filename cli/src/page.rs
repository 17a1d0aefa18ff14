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
    let mut lines = text.split('\n').flat_map(|line| wrap(line, columns));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

pub(crate) fn columns(io: &Io<'_>) -> usize {
    (io.terminal)().map_or(COLUMNS, |terminal| terminal.columns.min(COLUMNS))
}

/// Breaks a line at spaces to fit into `columns`, if its words do.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mut lines = Vec::new();
    let mut current = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split(' ') {
        let width = current.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && width > columns {
            lines.push(std::mem::replace(
                &mut current,
                " ".repeat(indent + HANGING),
            ));
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    lines.push(current);
    lines
}
