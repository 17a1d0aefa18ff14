//! The decisions on one ReplicaSet as a table, with one line for repeated decisions.

use std::io::{self, Write};

use decree::v1::{self, Rule, timeline_entry::Entry};
use prost_types::Timestamp as Time;

use super::status;
use crate::{age, args::ExplainArgs, decision, record, table::Table};

const STATUS: &str = "status";

/// A decision, and the number of equal decisions before it with only status writes between them. Of equal attempts, the server
/// keeps the last decision and their number.
struct Repeated<'a> {
    newest: &'a v1::DecisionRecord,
    /// All decisions before the newest one, the newest first.
    older: &'a [v1::DecisionRecord],
    first: Option<&'a Time>,
    times: usize,
}

/// Writes decisions, the newest first. Status writes are many and say little, so only `--all` shows them and repeated attempts;
/// otherwise they are counted.
pub(super) fn write(
    args: &ExplainArgs,
    answer: &v1::GetReplicaSetResponse,
    out: &mut dyn Write,
) -> io::Result<()> {
    let records = &answer.decisions;
    let is_wide = args.print.output.is_wide();
    let mut rows: Vec<Repeated<'_>> = Vec::new();
    let mut folded = 0_usize;
    for (at, record) in records.iter().enumerate() {
        if record.action == STATUS && !args.all {
            folded += 1;
            continue;
        }
        let last = rows.last_mut().filter(|_| !args.all);
        let attempts = attempts(&answer.timeline, record);
        match last.filter(|last| last.is_the_same_as(record)) {
            Some(last) => last.add(attempts),
            None => rows.push(Repeated::new(record, &records[at + 1..], attempts)),
        }
    }
    let mut table = Table::new(["TIME", "ACTION", "COUNT", "REASON", "PODS"]);
    for row in &rows {
        table.row(row.cells(is_wide));
    }
    if !table.is_empty() {
        table.write(out, "  ")?;
    }
    match folded {
        0 => Ok(()),
        1 => writeln!(out, "  and 1 status write (--all shows it)"),
        _ => writeln!(out, "  and {folded} status writes (--all shows them)"),
    }
}

// === impl Repeated ===

impl<'a> Repeated<'a> {
    fn new(
        record: &'a v1::DecisionRecord,
        older: &'a [v1::DecisionRecord],
        (times, first): (usize, Option<&'a Time>),
    ) -> Self {
        Self {
            newest: record,
            older,
            first,
            times,
        }
    }

    /// Whether the decision has the same number of operations of the same kind, for the same reason.
    fn is_the_same_as(&self, record: &v1::DecisionRecord) -> bool {
        let what = |it: &v1::DecisionRecord| (it.action.clone(), it.operations);
        what(self.newest) == what(record) && self.newest.reasons.first() == record.reasons.first()
    }

    const fn add(&mut self, (times, first): (usize, Option<&'a Time>)) {
        self.first = first;
        self.times += times;
    }

    fn cells(&self, is_wide: bool) -> [String; 5] {
        let Self {
            newest,
            older,
            first,
            times,
        } = self;
        let mut reason = because(newest, older, is_wide);
        if *times > 1 {
            let since = age::time_text(*first);
            reason.push_str(&format!(", {times} times since {since}"));
        }
        [
            age::time_text(newest.time.as_ref()),
            newest.action.clone(),
            newest.operations.to_string(),
            reason,
            record::targets(newest),
        ]
    }
}

/// The number of attempts with the same result as a decision, and the time of the first.
fn attempts<'a>(
    timeline: &'a [v1::TimelineEntry],
    record: &'a v1::DecisionRecord,
) -> (usize, Option<&'a Time>) {
    let repeated = timeline.iter().find_map(|entry| match &entry.entry {
        Some(Entry::Answered(it)) if it.batch_id == record.batch_id && it.times > 1 => {
            Some((usize::try_from(it.times).unwrap_or(1), entry.time.as_ref()))
        }
        _ => None,
    });
    repeated.unwrap_or((1, record.time.as_ref()))
}

/// The reason of a decision. `older` are the decisions before it, the newest first.
fn because(record: &v1::DecisionRecord, older: &[v1::DecisionRecord], is_wide: bool) -> String {
    if let Some(status) = &record.status {
        let before = older.iter().find_map(|record| record.status.as_ref());
        let what = status::changes(before, status);
        return format!("{}: {what}", decision::word(Rule::StatusDiffers));
    }
    record.reasons.first().map_or_else(String::new, |reason| {
        let detail = decision::detail_for(reason.rule(), reason.detail.clone(), is_wide);
        record::reason(&v1::Reason {
            detail,
            ..reason.clone()
        })
    })
}
