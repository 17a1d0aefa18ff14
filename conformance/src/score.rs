//! The tested rules, and their verdicts.

use std::fmt;

const PROTOCOL: &str = "https://github.com/decree-dev/decree/blob/main/docs/protocol.md";

/// The sections of docs/protocol.md with rules that can be verified from outside, in the order of the document.
const SECTIONS: [&str; 10] = [
    "opening",
    "one-writer",
    "frames",
    "lists-and-changes",
    "batches-and-outcomes",
    "outcome-by-state-found",
    "heartbeats-and-the-end-of-a-session",
    "isolation",
    "refusals",
    "compatibility",
];

/// A tested rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The anchor of the rule's section in docs/protocol.md.
    pub section: &'static str,
    /// The short form of the rule, unique among the rules of a server, and among the rules of an agent.
    pub rule: &'static str,
}

/// The verdict on a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The rule is kept.
    Kept,
    /// The rule is broken, with the observation.
    Broken(String),
    /// The rule was not tested, with the reason.
    Skipped(String),
}

/// A rule and its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The anchor of the section in docs/protocol.md.
    pub section: &'static str,
    /// The short form of the rule.
    pub rule: &'static str,
    /// The verdict on the rule.
    pub verdict: Verdict,
}

/// The rows of a run, in the order of docs/protocol.md. Prints as a table with a link to each section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    rows: Vec<Row>,
}

impl From<Result<(), String>> for Verdict {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Broken, |()| Self::Kept)
    }
}

impl Row {
    pub(crate) fn new(rule: Rule, verdict: impl Into<Verdict>) -> Self {
        Self {
            section: rule.section,
            rule: rule.rule,
            verdict: verdict.into(),
        }
    }

    /// The address of the rule's section in docs/protocol.md.
    #[must_use]
    pub fn link(&self) -> String {
        format!("{PROTOCOL}#{}", self.section)
    }

    /// Whether the rule was tested and is kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.verdict == Verdict::Kept
    }
}

impl Score {
    /// Sorts the rows by section.
    pub(crate) fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by_key(|row| SECTIONS.iter().position(|section| *section == row.section));
        Self { rows }
    }

    /// One row for each rule.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The score of the rules that contain a text.
    #[must_use]
    pub fn only(mut self, text: &str) -> Self {
        self.rows.retain(|row| row.rule.contains(text));
        self
    }

    /// The number of kept rules.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.rows.iter().filter(|row| row.is_kept()).count()
    }

    /// The number of rules that were not tested.
    #[must_use]
    pub fn skipped(&self) -> usize {
        let rows = self.rows.iter();
        rows.filter(|row| matches!(row.verdict, Verdict::Skipped(_)))
            .count()
    }

    /// Whether each tested rule is kept.
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
                Verdict::Broken(fault) => {
                    let fault = service::escaped(fault);
                    writeln!(f, "  FAIL  {}\n        {fault}", row.rule)?;
                }
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
