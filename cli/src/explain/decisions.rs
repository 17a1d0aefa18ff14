//! The decisions on one ReplicaSet as a table, with one line for repeated decisions.

use std::io::{self, Write};

use decree::v1::{self, Rule, timeline_entry::Entry};
use prost_types::Timestamp as Time;

use crate::{age, args::ExplainArgs, decision, page::Page, table::Table};

const STATUS: &str = "status";

/// A decision, and the number of equal decisions before it with only status writes between them. Of equal attempts, the server
/// keeps the last decision and their number.
struct Repeated<'a> {
    newest: &'a v1::DecisionRecord,
    first: Option<&'a Time>,
    times: usize,
}

/// Writes decisions, the newest first. Status writes are many and say little, so only `--all` shows them and repeated attempts;
/// otherwise they are counted.
pub(super) fn write(
    args: &ExplainArgs,
    answer: &v1::GetReplicaSetResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_wide = args.output.is_wide();
    let mut rows: Vec<Repeated<'_>> = Vec::new();
    let mut folded = 0_usize;
    for record in &answer.decisions {
        if record.action == STATUS && !args.all {
            folded += 1;
            continue;
        }
        let (times, first) = attempts(&answer.timeline, record);
        let last = rows.last_mut().filter(|_| !args.all);
        match last.filter(|last| is_same(last.newest, record)) {
            Some(last) => {
                last.first = first;
                last.times += times;
            }
            None => rows.push(Repeated {
                newest: record,
                first,
                times,
            }),
        }
    }
    let mut table = Table::new(page, ["TIME", "ACTION", "COUNT", "REASON", "PODS"]);
    for row in rows {
        let newest = row.newest;
        let mut reason = because(newest, is_wide);
        if row.times > 1 {
            let since = age::time_text(row.first);
            reason.push_str(&format!(", {} times since {since}", row.times));
        }
        table.row([
            age::time_text(newest.time.as_ref()),
            newest.action.clone(),
            newest.operations.to_string(),
            reason,
            decision::targets(newest),
        ]);
    }
    if !table.is_empty() {
        table.write(out, 2)?;
    }
    match folded {
        0 => Ok(()),
        1 => writeln!(out, "  and 1 status write (--all shows it)"),
        _ => writeln!(out, "  and {folded} status writes (--all shows them)"),
    }
}

/// Whether two decisions have the same number of operations of the same kind, for the same reason.
fn is_same(one: &v1::DecisionRecord, other: &v1::DecisionRecord) -> bool {
    let what = |it: &v1::DecisionRecord| (it.action.clone(), it.operations);
    what(one) == what(other) && one.reasons.first() == other.reasons.first()
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

fn because(record: &v1::DecisionRecord, is_wide: bool) -> String {
    if let Some(status) = &record.status {
        let (rule, said) = (Rule::StatusDiffers, decision::status(status));
        return format!("{}: {said}", decision::word(rule));
    }
    let reason = record.reasons.first();
    reason.map_or_else(String::new, |it| decision::reason_for(it, is_wide))
}
