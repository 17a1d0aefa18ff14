//! What happened, line by line; kept only where somebody will read it.

use std::fmt::Display;

use jiff::Timestamp;

/// How much of one happening is kept: enough to know it by.
const LINE_MAX: usize = 400;

/// The lines of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Begins to keep lines.
    pub fn record(&mut self) {
        self.lines = Some(Vec::new());
    }

    /// Keeps one line, if lines are kept.
    pub fn note(&mut self, at: Timestamp, what: &impl Display) {
        if let Some(lines) = &mut self.lines {
            // Signs of life are many and mean nothing.
            let mut line = format!("{at:.6} {what}");
            line.truncate(line.floor_char_boundary(LINE_MAX));
            if !line.ends_with("heartbeat") {
                lines.push(line);
            }
        }
    }

    /// Returns the lines.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
