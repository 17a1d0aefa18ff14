//! What led a ReplicaSet to where it is: how many pods were wanted, what was decided, and what became of it.

use std::io::{self, Write};

use decree::v1::{self, timeline_entry::Entry};

use crate::{age, record, refusal, table::Table};

/// Writes the entries that a session remembers, the newest first.
pub(super) fn write(timeline: &[v1::TimelineEntry], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["TIME", "EVENT", "DETAIL"]);
    for entry in timeline {
        let Some(happened) = &entry.entry else {
            continue;
        };
        let (time, event, detail) = match happened {
            Entry::Scaled(it) => (&entry.time, "scaled", scaled(it)),
            Entry::Decided(it) => (&entry.time, "decided", decided(it)),
            Entry::Answered(it) => (&it.last, "answered", answered(it, entry.time.as_ref())),
        };
        table.row([age::time_text(time.as_ref()), event.to_owned(), detail]);
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(out, "Timeline:")?;
    table.write(out, "  ")
}

fn scaled(scaled: &v1::Scaled) -> String {
    match scaled.from {
        Some(from) => format!("{from} to {} wanted", scaled.to),
        None => format!("created, {} wanted", scaled.to),
    }
}

fn decided(decided: &v1::Decided) -> String {
    let what = format!("{} {}", decided.action, decided.operations);
    match &decided.reason {
        Some(reason) => format!("{what}: {}", record::reason(reason)),
        None => what,
    }
}

fn answered(answered: &v1::Answered, since: Option<&prost_types::Timestamp>) -> String {
    let v1::Answered {
        action,
        done,
        failed,
        not_started,
        message,
        times,
        ..
    } = answered;
    let total = done.saturating_add(*failed).saturating_add(*not_started);
    let mut text = format!("{action}: {done} of {total} done");
    if *failed > 0 {
        let class = refusal::class(answered);
        text.push_str(&format!(", {failed} failed ({class})"));
    }
    if *not_started > 0 {
        text.push_str(&format!(", {not_started} not started"));
    }
    if *times > 1 {
        text.push_str(&format!(", {times} times since {}", age::time_text(since)));
    }
    match message.as_str() {
        "" => text,
        message => format!("{text}: {message}"),
    }
}
