//! What happened, line by line; kept only where somebody will read it.

use std::fmt::Display;

use jiff::Timestamp;

use crate::depth::number;

/// How many happenings a failure shows, unless `DECREE_SIM_TRACE` says otherwise.
const SHOWN: usize = 60;
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

    /// Returns the lines of several worlds in the order of their times, each with the number of its world.
    pub fn merged<'a>(traces: impl Iterator<Item = &'a Self>) -> Self {
        let numbered = traces.enumerate().flat_map(|(number, trace)| {
            let parts = trace.lines().iter().filter_map(|line| line.split_once(' '));
            parts.map(move |(at, what)| (at, format!("{at} cluster {number}: {what}")))
        });
        let mut lines: Vec<_> = numbered.collect();
        lines.sort_by_key(|(at, _)| *at);
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        Self {
            lines: (!lines.is_empty()).then_some(lines),
        }
    }

    /// Returns the lines that a failure shows: the last ones.
    #[must_use]
    pub fn last(&self) -> &[String] {
        let lines = self.lines();
        let shown = number("DECREE_SIM_TRACE").unwrap_or(SHOWN);
        &lines[lines.len().saturating_sub(shown)..]
    }

    /// Returns the lines.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
