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
    page: Page,
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
        let (times, first) = attempts(&answer.timeline, record);
        let last = rows.last_mut().filter(|_| !args.all);
        match last.filter(|last| is_same(last.newest, record)) {
            Some(last) => {
                last.first = first;
                last.times += times;
            }
            None => rows.push(Repeated {
                newest: record,
                older: &records[at + 1..],
                first,
                times,
            }),
        }
    }
    let mut table = Table::new(page, ["TIME", "ACTION", "COUNT", "REASON", "PODS"]);
    for row in rows {
        let newest = row.newest;
        let mut reason = because(newest, row.older, is_wide);
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

/// The reason of a decision. `older` are the decisions before it, the newest first.
fn because(record: &v1::DecisionRecord, older: &[v1::DecisionRecord], is_wide: bool) -> String {
    if let Some(status) = &record.status {
        let before = older.iter().find_map(|record| record.status.as_ref());
        let what = changes(before, status);
        return format!("{}: {what}", decision::word(Rule::StatusDiffers));
    }
    record.reasons.first().map_or_else(String::new, |reason| {
        let detail = decision::detail_for(reason.rule(), reason.detail.clone(), is_wide);
        decision::reason(&v1::Reason {
            detail,
            ..reason.clone()
        })
    })
}

/// The differences from the last written status; the whole status if none is known.
fn changes(before: Option<&v1::ReplicaSetStatus>, status: &v1::ReplicaSetStatus) -> String {
    let now = numbers(status);
    let Some(before) = before.map(numbers) else {
        let parts = now.map(|(word, number)| format!("{number} {word}"));
        return parts.join(", ") + &failure(status);
    };
    let differs = before.into_iter().zip(now).filter(|(old, new)| old != new);
    let mut parts: Vec<_> = differs
        .map(|((word, old), (_, new))| format!("{word} {old} to {new}"))
        .collect();
    if parts.is_empty() {
        parts.push("the same numbers".to_owned());
    }
    parts.join(", ") + &failure(status)
}

fn numbers(status: &v1::ReplicaSetStatus) -> [(&'static str, i64); 6] {
    [
        ("replicas", status.replicas.into()),
        ("fully labeled", status.fully_labeled_replicas.into()),
        ("ready", status.ready_replicas.into()),
        ("available", status.available_replicas.into()),
        (
            "terminating",
            status.terminating_replicas.unwrap_or(0).into(),
        ),
        ("observed generation", status.observed_generation),
    ]
}

fn failure(status: &v1::ReplicaSetStatus) -> String {
    let mut conditions = status.conditions.iter();
    let failure = conditions.find(|condition| condition.r#type == "ReplicaFailure");
    failure.map_or_else(String::new, |condition| {
        format!(", ReplicaFailure {}", condition.reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(replicas: i32, ready: i32) -> v1::ReplicaSetStatus {
        v1::ReplicaSetStatus {
            replicas,
            ready_replicas: ready,
            ..v1::ReplicaSetStatus::default()
        }
    }

    #[test]
    fn only_what_differs_is_said_and_a_failure_with_its_reason() {
        let mut failed = status(3, 3);
        failed.conditions.push(v1::ReplicaSetCondition {
            r#type: "ReplicaFailure".to_owned(),
            reason: "FailedCreate".to_owned(),
            ..v1::ReplicaSetCondition::default()
        });
        let all = "3 replicas, 0 fully labeled, 3 ready, 0 available, 0 terminating, 0 observed generation";
        for (before, now, said) in [
            (Some(status(3, 2)), status(3, 3), "ready 2 to 3"),
            (None, status(3, 3), all),
            (Some(status(3, 3)), status(3, 3), "the same numbers"),
            (
                Some(status(3, 2)),
                failed,
                "ready 2 to 3, ReplicaFailure FailedCreate",
            ),
        ] {
            assert_eq!(changes(before.as_ref(), &now), said);
        }
    }
}
