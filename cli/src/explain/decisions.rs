//! The decisions on one ReplicaSet as a table with their results, with one line for repeated attempts.

use std::io::{self, Write};

use decree_api::v1::{self, Rule, timeline_entry::Entry};

use crate::{
    age,
    args::ExplainArgs,
    cause, decision,
    page::Page,
    table::{NONE, Table},
};

/// Writes decisions, the newest first. Status writes are many and say little, so only `--all` shows them; otherwise they are counted.
pub(super) fn write(
    args: &ExplainArgs,
    answer: &v1::GetReplicaSetResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (is_wide, summary) = (args.print.output.is_wide(), answer.summary.as_ref());
    let mode = summary.map_or(v1::Mode::Unspecified, v1::ReplicaSetSummary::mode);
    let headers = ["TIME", "ACTION", "COUNT", "RESULT", "REASON", "PODS"];
    let mut table = Table::new(page, headers);
    let mut left_out = 0_usize;
    for record in &answer.decisions {
        if record.action() == v1::Action::WriteStatus && !args.all {
            left_out += 1;
            continue;
        }
        let (mut result, mut reason) = (NONE.to_owned(), because(record, is_wide));
        if let Some((first, answered)) = answered(&answer.timeline, record) {
            result = self::result(answered, mode);
            if answered.times > 1 {
                let since = age::time_text(first.event_time.as_ref());
                reason.push_str(&format!(", {} times since {since}", answered.times));
            }
        }
        table.row([
            age::time_text(record.decide_time.as_ref()),
            decision::action(record.action()).to_owned(),
            record.operations.to_string(),
            result,
            reason,
            decision::targets(record),
        ]);
    }
    if !table.is_empty() {
        table.write(out, 2)?;
    }
    match left_out {
        0 => Ok(()),
        1 => writeln!(out, "  and 1 status write (--all shows it)"),
        _ => writeln!(out, "  and {left_out} status writes (--all shows them)"),
    }
}

/// The outcomes of a decision, if they have come and the server has them. Of several attempts with the same result, it keeps the last decision
/// and the number; the time of the entry is that of the first.
fn answered<'a>(
    timeline: &'a [v1::TimelineEntry],
    record: &v1::DecisionRecord,
) -> Option<(&'a v1::TimelineEntry, &'a v1::Answered)> {
    timeline.iter().find_map(|entry| match &entry.entry {
        Some(Entry::Answered(it)) if it.batch_id == record.batch_id => Some((entry, it)),
        _ => None,
    })
}

/// The outcome of an attempt in a word, with the kind of a failure.
fn result(answered: &v1::Answered, mode: v1::Mode) -> String {
    let word = match (answered.done, answered.failed, answered.not_started) {
        (_, 0, 0) => "done",
        (0, 0, _) if cause::mode_without_effect(mode).is_some() => "not executed",
        (0, 0, _) => "not done",
        (0, _, _) => "failed",
        (_, _, _) => "partly done",
    };
    match answered.failed {
        0 => word.to_owned(),
        _ => format!("{word} ({})", cause::failure_class(answered)),
    }
}

fn because(record: &v1::DecisionRecord, is_wide: bool) -> String {
    if let Some(status) = &record.status {
        let (rule, said) = (Rule::StatusDiffers, decision::status(status));
        return format!("{}: {said}", decision::word(rule));
    }
    let reason = record.reasons.first();
    reason.map_or_else(String::new, |it| decision::reason_for(it, is_wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_says_what_failed_and_what_the_mode_does_not_execute() {
        for (counts, mode, expected) in [
            ([2, 0, 0], v1::Mode::Enforce, "done"),
            ([0, 1, 7], v1::Mode::Enforce, "failed (QUOTA)"),
            ([1, 1, 0], v1::Mode::Enforce, "partly done (QUOTA)"),
            ([1, 0, 1], v1::Mode::Enforce, "partly done"),
            ([0, 0, 8], v1::Mode::Enforce, "not done"),
            ([0, 0, 8], v1::Mode::Shadow, "not executed"),
            ([0, 0, 8], v1::Mode::DryRun, "not executed"),
        ] {
            let [done, failed, not_started] = counts;
            let answered = v1::Answered {
                done,
                failed,
                not_started,
                failure_class: v1::FailureClass::Quota.into(),
                ..v1::Answered::default()
            };
            assert_eq!(result(&answered, mode), expected, "{counts:?}");
        }
    }
}
