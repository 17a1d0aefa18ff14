//! The events of a run, line by line, recorded only if somebody will read them.

use std::fmt::Display;

use jiff::Timestamp;

use crate::depth::number;

/// The number of events that a failure shows, unless `DECREE_SIM_TRACE` sets it.
const SHOWN: usize = 60;
/// The maximum length of a recorded event, enough to identify it.
const LINE_MAX: usize = 400;

/// The lines of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// Starts to record lines.
    pub fn record(&mut self) {
        self.lines = Some(Vec::new());
    }

    /// Records one line, if recording.
    pub fn note(&mut self, at: Timestamp, what: &impl Display) {
        if let Some(lines) = &mut self.lines {
            let mut line = format!("{at:.6} {what}");
            // Maps of messages have another order in each run.
            while let Some(from) = line.find("{\"")
                && let Some(length) = line[from..].find('}')
            {
                line.replace_range(from..from + length, "{…");
            }
            line.truncate(line.floor_char_boundary(LINE_MAX));
            // Heartbeats are frequent and meaningless.
            if !line.contains("frame: Some(Heartbeat(") {
                lines.push(line);
            }
        }
    }

    /// Merges the lines of several worlds in the order of their times, each with the number of its world.
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

    /// Returns the last lines, which a failure shows.
    pub fn last(&self) -> &[String] {
        let lines = self.lines();
        let shown = number("DECREE_SIM_TRACE").unwrap_or(SHOWN);
        &lines[lines.len().saturating_sub(shown)..]
    }

    /// Returns the lines.
    pub fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}
