//! What was verified, and what came of it.

use std::fmt;

/// Where the rules can be read.
const PROTOCOL: &str = "https://github.com/decree-dev/decree/blob/main/docs/protocol.md";

/// The sections of docs/protocol.md that have rules which can be verified from outside, in their order there.
const SECTIONS: [&str; 8] = [
    "opening",
    "one-writer",
    "frames",
    "lists-and-changes",
    "batches-and-outcomes",
    "heartbeats-and-the-end-of-a-session",
    "isolation",
    "refusals",
];

/// One rule and what came of its case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The section of docs/protocol.md, as its anchor.
    pub section: &'static str,
    /// The rule in short.
    pub rule: &'static str,
    /// What was seen in place of what the rule demands, or `None` where the rule is kept.
    pub fault: Option<String>,
}

/// The rows of a run, in the order of docs/protocol.md. Prints as a table with a link to each section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    rows: Vec<Row>,
}

// === impl Row ===

impl Row {
    /// Returns the address of the section of docs/protocol.md that has the rule.
    #[must_use]
    pub fn link(&self) -> String {
        format!("{PROTOCOL}#{}", self.section)
    }
}

// === impl Score ===

impl Score {
    /// Puts rows into the order of their sections.
    pub(crate) fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by_key(|row| SECTIONS.iter().position(|section| *section == row.section));
        Self { rows }
    }

    /// Returns one row for each rule.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns how many rules are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.rows.iter().filter(|row| row.fault.is_none()).count()
    }

    /// Returns whether each rule is kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept() == self.rows.len()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut section = "";
        for row in &self.rows {
            if row.section != section {
                section = row.section;
                writeln!(f, "{}", row.link())?;
            }
            match &row.fault {
                None => writeln!(f, "  ok    {}", row.rule)?,
                Some(fault) => writeln!(f, "  FAIL  {}\n        {fault}", row.rule)?,
            }
        }
        write!(f, "score: {} of {}", self.kept(), self.rows.len())
    }
}
