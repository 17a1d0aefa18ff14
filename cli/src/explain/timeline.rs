//! The history of a ReplicaSet: its desired replicas, and each attempt with its outcome.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use decree::v1::{self, timeline_entry::Entry};
use jiff::Timestamp;

use crate::{age, cause, decision, page::Page, table::Table};

/// Writes the entries that a session remembers, the newest first. A decision and its outcomes are one entry, and so are attempts
/// with the same result.
pub(super) fn write(
    timeline: &[v1::TimelineEntry],
    mode: v1::Mode,
    now: Timestamp,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let entries = timeline
        .iter()
        .filter_map(|entry| Some((entry, entry.entry.as_ref()?)));
    let mut decisions = BTreeMap::new();
    let mut answered_batches = Vec::new();
    for (_, happened) in entries.clone() {
        match happened {
            Entry::Decided(it) => {
                decisions.insert(it.batch_id, it);
            }
            Entry::Answered(it) => answered_batches.push(it.batch_id),
            Entry::Scaled(_) => {}
        }
    }
    let mut table = Table::new(page, ["TIME", "AGO", "EVENT", "DETAIL"]);
    for (entry, happened) in entries {
        let (time, event, detail) = match happened {
            Entry::Scaled(it) => (&entry.time, "scaled", scaled(it)),
            Entry::Decided(it) if answered_batches.contains(&it.batch_id) => continue,
            Entry::Decided(it) => (&entry.time, "decided", decided(it)),
            Entry::Answered(it) => {
                let decision = decisions.get(&it.batch_id).copied();
                (
                    &it.last,
                    event(it, mode),
                    answered(it, decision, entry.time.as_ref()),
                )
            }
        };
        let (at, ago) = (age::time_text(time.as_ref()), age::ago(time.as_ref(), now));
        table.row([at, ago, event.to_owned(), detail]);
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(out, "Timeline, in UTC:")?;
    table.write(out, 2)
}

fn scaled(scaled: &v1::Scaled) -> String {
    match scaled.from {
        Some(from) => format!("{from} to {} desired", scaled.to),
        None => format!("created, {} desired", scaled.to),
    }
}

fn decided(decided: &v1::Decided) -> String {
    let what = format!("{} {}", decided.action, decided.operations);
    match &decided.reason {
        Some(reason) => format!("{what}: {}", decision::reason(reason)),
        None => what,
    }
}

/// The outcome of an attempt in a word.
const fn event(answered: &v1::Answered, mode: v1::Mode) -> &'static str {
    match (answered.done, answered.failed, answered.not_started) {
        (_, 0, 0) => "done",
        (0, 0, _) if cause::mode_without_effect(mode).is_some() => "not executed",
        (0, 0, _) => "not done",
        (0, _, _) => "failed",
        (_, _, _) => "partly done",
    }
}

fn answered(
    answered: &v1::Answered,
    decision: Option<&v1::Decided>,
    since: Option<&prost_types::Timestamp>,
) -> String {
    let (done, failed, not_started) = (answered.done, answered.failed, answered.not_started);
    let total = done.saturating_add(failed).saturating_add(not_started);
    let mut text = format!("{}: {done} of {total} done", answered.action);
    if failed > 0 {
        let class = cause::failure_class(answered);
        text.push_str(&format!(", {failed} failed ({class})"));
    }
    if not_started > 0 {
        text.push_str(&format!(", {not_started} not started"));
    }
    if answered.times > 1 {
        let since = age::time_text(since);
        text.push_str(&format!(", {} times since {since}", answered.times));
    }
    if !answered.message.is_empty() {
        text.push_str(&format!(": {}", answered.message));
    }
    match decision.and_then(|decision| decision.reason.as_ref()) {
        Some(reason) => format!("{text}; {}", decision::reason(reason)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::written;

    fn at(second: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp {
            seconds: second,
            nanos: 0,
        })
    }

    fn entry(second: i64, entry: Entry) -> v1::TimelineEntry {
        v1::TimelineEntry {
            time: at(second),
            entry: Some(entry),
        }
    }

    fn decision(batch_id: u64, operations: i32) -> Entry {
        Entry::Decided(v1::Decided {
            batch_id,
            action: "create".to_owned(),
            operations,
            reason: Some(v1::Reason {
                rule: v1::Rule::TooFewReplicas.into(),
                detail: "7 active pods, 15 desired".to_owned(),
            }),
        })
    }

    fn of(timeline: &[v1::TimelineEntry], mode: v1::Mode) -> String {
        let now = Timestamp::from_second(310).expect("a time");
        written(|out| write(timeline, mode, now, Page::default(), out))
    }

    #[test]
    fn attempt_is_one_entry_that_says_whether_it_failed() {
        let refused = v1::Answered {
            batch_id: 5,
            action: "create".to_owned(),
            failed: 1,
            not_started: 7,
            class: v1::FailureClass::Quota.into(),
            message: "exceeded quota".to_owned(),
            times: 36,
            last: at(300),
            ..v1::Answered::default()
        };
        let done = v1::Answered {
            batch_id: 1,
            action: "create".to_owned(),
            done: 7,
            times: 1,
            last: at(10),
            ..v1::Answered::default()
        };
        let scaled = v1::Scaled {
            from: Some(7),
            to: 15,
        };
        let timeline = [
            entry(310, decision(6, 8)),
            entry(60, Entry::Answered(refused)),
            entry(60, decision(5, 8)),
            entry(50, Entry::Scaled(scaled)),
            entry(10, Entry::Answered(done)),
        ];
        expect![[r#"
            Timeline, in UTC:
              TIME                       AGO         EVENT     DETAIL
              1970-01-01T00:05:10.000Z   0s ago      decided   create 8: TOO_FEW_REPLICAS: 7 active pods, 15 desired
              1970-01-01T00:05:00.000Z   10s ago     failed    create: 0 of 8 done, 1 failed (QUOTA), 7 not started, 36 times since 1970-01-01T00:01:00.000Z: exceeded quota; TOO_FEW_REPLICAS: 7 active pods, 15 desired
              1970-01-01T00:00:50.000Z   4m20s ago   scaled    7 to 15 desired
              1970-01-01T00:00:10.000Z   5m ago      done      create: 7 of 7 done
        "#]]
        .assert_eq(&of(&timeline, v1::Mode::Enforce));
    }

    #[test]
    fn what_the_mode_does_not_execute_has_not_failed() {
        let answered = v1::Answered {
            batch_id: 5,
            action: "create".to_owned(),
            not_started: 8,
            times: 2,
            last: at(300),
            ..v1::Answered::default()
        };
        let timeline = [entry(60, Entry::Answered(answered))];
        for (mode, event) in [
            (v1::Mode::Enforce, "not done"),
            (v1::Mode::Shadow, "not executed"),
            (v1::Mode::DryRun, "not executed"),
        ] {
            let said = of(&timeline, mode);
            let row = format!("  {event}   create: 0 of 8 done, 8 not started, 2 times since");
            assert!(said.contains(&row), "{said}");
        }
    }
}
