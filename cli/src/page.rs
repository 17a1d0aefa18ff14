//! Text in lines that fit a terminal, without escape sequences.

use std::io::{self, Write};

use crate::{paint::Paint, streams::Io};

/// The maximum width of a line of running text.
const COLUMNS: usize = 80;
/// The additional indentation of the rest of a broken line.
const HANGING: usize = 4;

/// What the reader sees the output on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    /// The maximum width of a line; `None` without a maximum.
    pub(crate) columns: Option<usize>,
    pub(crate) paint: Paint,
}

impl Page {
    /// The terminal on standard output. Without a terminal, lines have any width.
    pub(crate) fn new(io: &Io<'_>) -> Self {
        Self {
            columns: (io.columns)(),
            paint: io.paint(),
        }
    }

    /// The maximum width of running text.
    pub(crate) fn text_columns(self) -> usize {
        self.columns.map_or(COLUMNS, |columns| columns.min(COLUMNS))
    }

    /// Writes a line after `indent` spaces, broken at spaces to fit, if its words do.
    pub(crate) fn write(self, out: &mut dyn Write, indent: usize, line: &str) -> io::Result<()> {
        self.write_hanging(out, indent, line, HANGING)
    }

    /// Writes the same; the rest is indented by `hanging` more than the line.
    pub(crate) fn write_hanging(
        self,
        out: &mut dyn Write,
        indent: usize,
        line: &str,
        hanging: usize,
    ) -> io::Result<()> {
        let line = " ".repeat(indent) + line;
        let mut lines =
            wrap_hanging(&line, self.columns.unwrap_or(usize::MAX), hanging).into_iter();
        lines.try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// Writes lines of text that fit the terminal, and flushes.
pub(crate) fn say(text: &str, io: &mut Io<'_>) -> io::Result<()> {
    write(text, Page::new(io).text_columns(), io.stdout)?;
    io.stdout.flush()
}

/// Writes lines of text that fit `columns`.
pub(crate) fn write(text: &str, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    let lines = text.split('\n').map(service::escaped);
    let mut lines = lines.flat_map(|line| wrap(&line, columns));
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

/// Breaks a line at spaces to fit into `columns`, if its words do.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    wrap_hanging(line, columns, HANGING)
}

/// Breaks a line at spaces to fit into `columns`, if its words do. The rest is indented by `hanging` more than the line.
fn wrap_hanging(line: &str, columns: usize, hanging: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mut words = text.split(' ');
    let mut lines = Vec::new();
    let mut current = " ".repeat(indent) + words.next().unwrap_or_default();
    for word in words {
        if current.chars().count() + 1 + word.chars().count() > columns {
            let rest = " ".repeat(indent + hanging) + word;
            lines.push(std::mem::replace(&mut current, rest));
        } else {
            current.push(' ');
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}
