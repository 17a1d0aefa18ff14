//! What was verified, and what came of it.

use std::fmt;

/// Where the rules can be read.
const PROTOCOL: &str = "https://github.com/decree-dev/decree/blob/main/docs/protocol.md";

/// The sections of docs/protocol.md that have rules which can be verified from outside, in their order there.
const SECTIONS: [&str; 11] = [
    "opening",
    "one-writer",
    "frames",
    "lists-and-changes",
    "batches-and-outcomes",
    "outcome-by-state-found",
    "traces",
    "heartbeats-and-the-end-of-a-session",
    "isolation",
    "refusals",
    "compatibility",
];

/// A rule that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The section of docs/protocol.md that has the rule, as its anchor.
    pub section: &'static str,
    /// The rule in short. No two rules of a server have the same text, and no two of an agent.
    pub rule: &'static str,
}

/// Whether a rule is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Kept,
    /// It is not: what was seen in place of what the rule demands.
    Broken(String),
    /// It was not tested, and why.
    Skipped(String),
}

/// One rule and what came of its test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The section of docs/protocol.md, as its anchor.
    pub section: &'static str,
    /// The rule in short.
    pub rule: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

/// The rows of a run, in the order of docs/protocol.md. Prints as a table with a link to each section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    rows: Vec<Row>,
}

// === impl Verdict ===

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Broken, |()| Self::Kept)
    }
}

// === impl Row ===

impl Row {
    pub(crate) const fn new(section: &'static str, rule: &'static str, verdict: Verdict) -> Self {
        Self {
            section,
            rule,
            verdict,
        }
    }

    /// Returns the address of the section of docs/protocol.md that has the rule.
    #[must_use]
    pub fn link(&self) -> String {
        format!("{PROTOCOL}#{}", self.section)
    }

    /// Returns whether the rule was tested and is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.verdict == Verdict::Kept
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

    /// Returns the score of the rules that contain a text.
    #[must_use]
    pub fn only(mut self, text: &str) -> Self {
        self.rows.retain(|row| row.rule.contains(text));
        self
    }

    /// Returns how many rules are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.rows.iter().filter(|row| row.is_kept()).count()
    }

    /// Returns how many rules were not tested.
    #[must_use]
    pub fn skipped(&self) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| matches!(row.verdict, Verdict::Skipped(_)))
            .count()
    }

    /// Returns whether each rule that was tested is kept.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept() + self.skipped() == self.rows.len()
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
            match &row.verdict {
                Verdict::Kept => writeln!(f, "  ok    {}", row.rule)?,
                Verdict::Broken(fault) => writeln!(f, "  FAIL  {}\n        {fault}", row.rule)?,
                Verdict::Skipped(why) => writeln!(f, "  skip  {}\n        {why}", row.rule)?,
            }
        }
        let skipped = self.skipped();
        write!(f, "score: {} of {}", self.kept(), self.rows.len() - skipped)?;
        if skipped > 0 {
            write!(f, " ({skipped} not tested)")?;
        }
        Ok(())
    }
}
