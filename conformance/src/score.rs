//! What was verified, and what came of it.

use std::fmt;

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
    /// One row for each rule.
    pub rows: Vec<Row>,
}

// === impl Score ===

impl Score {
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
                writeln!(f, "docs/protocol.md#{section}")?;
            }
            match &row.fault {
                None => writeln!(f, "  ok    {}", row.rule)?,
                Some(fault) => writeln!(f, "  FAIL  {}\n        {fault}", row.rule)?,
            }
        }
        write!(f, "score: {} of {}", self.kept(), self.rows.len())
    }
}
