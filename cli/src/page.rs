//! The streams of a command, their colors, and text in lines that fit a terminal, without escape sequences.
//!
//! [`Io`] says of each stream whether colors are wanted; text for programs never has any.

use std::io::{self, Read, Write};

use clap::builder::styling::{AnsiColor, Style};
use decree_api::v1::Severity;
use service::escaped;

/// The maximum width of a line of running text.
const COLUMNS: usize = 80;
/// How much something needs a person, and the word of the console for it.
pub(crate) const STATES: [(Severity, &str); 4] = [
    (Severity::Blocked, "Blocked"),
    (Severity::Slow, "Slow"),
    (Severity::Working, "Working"),
    (Severity::InSync, "In sync"),
];
/// The additional indentation of the rest of a broken line.
const HANGING: usize = 4;

/// What the reader sees the output on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Page {
    /// The maximum width of a line; `None` without a maximum.
    pub(crate) columns: Option<usize>,
    pub(crate) paint: Paint,
}

/// Puts text on one line, and escapes characters that steer a terminal, turn the direction of writing or are invisible: much of
/// it comes from peers.
pub(crate) fn one_line(text: &str) -> String {
    escaped(&text.replace(['\n', '\r', '\t'], " "))
}

impl Page {
    /// The terminal on standard output. Without a terminal, lines have any width.
    pub(crate) fn new(io: &Io<'_>) -> Self {
        Self {
            columns: (io.columns)(),
            paint: Paint::new(io.colors.stdout),
        }
    }

    /// The same for running text, which is narrow everywhere.
    pub(crate) fn text(self) -> Self {
        let columns = self.columns.map_or(COLUMNS, |columns| columns.min(COLUMNS));
        Self {
            columns: Some(columns),
            ..self
        }
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
    let page = Page::new(io).text();
    for line in text.split('\n') {
        page.write(io.stdout, 0, &escaped(line))?;
    }
    io.stdout.flush()
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

/// Whether a stream shows colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Without `is_on`, text stays unchanged.
    pub(crate) const fn new(is_on: bool) -> Self {
        Self(is_on)
    }

    /// The color of a severity: red, yellow, blue or green. An unknown severity has no color.
    pub(crate) fn paint(self, severity: Severity, text: &str) -> String {
        self.styled(style(severity), text)
    }

    /// The word before an error.
    pub(crate) fn error(self, text: &str) -> String {
        self.styled(style(Severity::Blocked).bold(), text)
    }

    /// The word before a hint.
    pub(crate) fn hint(self, text: &str) -> String {
        self.styled(AnsiColor::Cyan.on_default().bold(), text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

const fn style(severity: Severity) -> Style {
    match severity {
        Severity::Blocked => AnsiColor::Red.on_default(),
        Severity::Slow => AnsiColor::Yellow.on_default(),
        Severity::Working => AnsiColor::Blue.on_default(),
        Severity::InSync => AnsiColor::Green.on_default(),
        Severity::Unspecified => Style::new(),
    }
}

/// The severity of a state, for lists without a severity.
pub(crate) fn severity_of(state: &str) -> Severity {
    let known = STATES.iter().find(|(_, word)| *word == state);
    known.map_or(Severity::Unspecified, |(severity, _)| *severity)
}

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
    /// Tells something on standard error, on one line.
    pub(crate) fn notice(&mut self, said: &str) -> io::Result<()> {
        writeln!(self.stderr, "notice: {}", one_line(said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_color_of_their_severity_on_a_stream_with_colors() {
        let (on, off) = (Paint::new(true), Paint::default());
        for (state, color) in [
            ("Blocked", 31),
            ("Slow", 33),
            ("Working", 34),
            ("In sync", 32),
        ] {
            let painted = format!("\u{1b}[{color}m{state}\u{1b}[0m");
            assert_eq!(on.paint(severity_of(state), state), painted);
            assert_eq!(off.paint(severity_of(state), state), state);
        }
        assert_eq!(on.paint(severity_of("STATE"), "STATE"), "STATE");
        assert_eq!(
            (on.error(""), off.error("error:")),
            ("".into(), "error:".into())
        );
    }
}
