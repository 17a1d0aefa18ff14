//! `decree explain`: the state of one ReplicaSet, what it waits for, and why.

use std::io::{self, Write};

use agent_core::preferences;
use decree_api::v1::{self, Rule};
use jiff::Timestamp;

use crate::{
    age,
    args::{ExplainArgs, NamespaceArgs},
    cause, decision,
    exit::{Exit, Failure},
    format,
    page::{Io, Page, one_line},
    server,
    source::{KINDS, RECORDS, Source},
    stale,
};

mod decisions;
mod why;

const LABEL: usize = 13;
/// The lines that only a session has.
const OF_SESSION: [&str; 3] = ["In flight:", "Next sync:", "Failures:"];

pub(crate) fn run(args: &ExplainArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    server::block_on(async {
        let mut namespaces = args.namespace.clone();
        let wanted = |it: &NamespaceArgs| it.wanted(&args.names);
        let source = Source::open(&args.source, &mut namespaces, wanted, &KINDS, io).await?;
        let (names, unknown) = source.replica_sets(&args.names, &namespaces).await?;
        if args.why.is_some() && names.len() > 1 {
            let cause = "--why is about a pod of one ReplicaSet";
            return Err(Failure::new(Exit::Usage, cause).hint("name one ReplicaSet"));
        }
        let (mut missing, mut printed) = (Vec::new(), 0);
        for named in &names {
            let Some(answer) = source.state(named).await? else {
                missing.push(named.clone());
                continue;
            };
            stale::notice(&answer.stale_view, io)?;
            if let Some(pod) = &args.why {
                why::write(&source, args, (named, pod), answer, io)?;
                continue;
            }
            let output = args.print.output;
            if printed > 0 && output.is_for_people() {
                writeln!(io.stdout)?;
            }
            printed += 1;
            if output.is_for_people() {
                let page = Page::new(io);
                if source.is_snapshot() {
                    write_snapshot(&answer, page, io.stdout)?;
                } else {
                    write(args, &answer, page, io.stdout)?;
                }
            } else {
                let json = format::proto_json("GetReplicaSetResponse", &answer)?;
                output.write(io.stdout, &json, &[&named.name])?;
            }
        }
        source.check_found(&missing, unknown).await
    })
}

/// Writes what a snapshot knows of a ReplicaSet.
fn write_snapshot(
    answer: &v1::GetReplicaSetResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines = state(answer);
    lines.retain(|(label, text)| !OF_SESSION.contains(label) && !text.is_empty());
    lines.push(("Not known:", format!("decisions and refusals; {RECORDS}")));
    write_lines(&lines, page, out)
}

fn write_lines(lines: &[(&str, String)], page: Page, out: &mut dyn Write) -> io::Result<()> {
    for (label, text) in lines {
        let line = format!("{label:<LABEL$}{}", one_line(text));
        page.write_hanging(out, 0, &line, LABEL)?;
    }
    Ok(())
}

fn write(
    args: &ExplainArgs,
    answer: &v1::GetReplicaSetResponse,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_lines(&state(answer), page, out)?;
    if answer.decisions.is_empty() {
        writeln!(out, "Decisions:   none yet")?;
    } else {
        writeln!(out, "Decisions:")?;
        decisions::write(args, answer, page, out)?;
    }
    if let Some(last) = &answer.last_scale_down {
        why::write_last(last, args.print.output.is_wide(), page, out)?;
    }
    Ok(())
}

/// The state of a ReplicaSet as labels and texts; an empty label continues the text before it.
pub(crate) fn state(answer: &v1::GetReplicaSetResponse) -> Vec<(&'static str, String)> {
    let summary = answer.summary.clone().unwrap_or_default();
    let mut lines = vec![("Name:", decision::path(summary.replica_set.as_ref()))];
    lines.push(("Cause:", cause::sentence(&summary, Timestamp::now())));
    lines.extend(cause::next_command(&summary).map(|next| ("Next:", next.to_owned())));
    let replicas = format!(
        "{} desired, {} current, {} ready, {} available, {} terminating",
        summary.replicas, summary.active, summary.ready, summary.available, summary.terminating,
    );
    lines.extend([
        ("Cluster:", summary.cluster.clone()),
        ("Replicas:", replicas),
    ]);
    for (label, ended) in [("Not ready:", false), ("Ended:", true)] {
        lines.extend(cause::not_ready(&summary, ended).map(|said| (label, said)));
    }
    lines.push(("State:", cause::state(&summary).to_owned()));
    let preferences = summary.preferences.as_ref().map(preferences::words);
    let preferences = preferences.filter(|words| !words.is_empty());
    lines.extend(preferences.map(|words| ("Prefers:", words)));
    let ignored = summary.ignored_annotations.iter();
    lines.extend(ignored.map(|text| ("Ignored:", text.clone())));
    let mode = cause::mode_without_effect(summary.mode());
    let effect = if summary.mode() == v1::Mode::Advise {
        "another controller acts; the agent writes deletion costs"
    } else {
        "the decisions are not executed"
    };
    lines.extend(mode.map(|mode| ("Mode:", format!("{mode}: {effect}"))));
    let because = summary.reasons.iter().filter(|it| obstacle(it).is_none());
    let labels = std::iter::once("Because:").chain(std::iter::repeat(""));
    lines.extend(labels.zip(because.map(decision::reason)));
    if cause::is_open(&summary)
        && let Some(said) = cause::newest_refusal(&answer.timeline)
    {
        lines.push(("Refused:", said));
    }
    let held_back = summary.reasons.iter().filter_map(obstacle);
    lines.extend(held_back.map(|said| ("Held back:", said)));
    let in_flight = answer.in_flight.as_ref().map(|batch| {
        let action = decision::action(batch.action());
        format!(
            "{action} {} of {} outcomes",
            batch.outcomes, batch.operations
        )
    });
    let next = answer.next_sync_time.as_ref();
    let next = next.map(|time| age::time_text(Some(time)));
    let next = next.unwrap_or_else(|| "at the next event".to_owned());
    lines.extend([
        (
            "In flight:",
            in_flight.unwrap_or_else(|| "nothing".to_owned()),
        ),
        ("Next sync:", next),
        ("Failures:", format!("{} in a row", answer.failures)),
    ]);
    lines
}

/// The component that held the last attempt back, with its words; `None` for other reasons.
fn obstacle(reason: &v1::Reason) -> Option<String> {
    let said = match reason.detail.trim_end_matches('.') {
        "" => "nothing was said of why",
        said => said,
    };
    let who = if reason.rule() == Rule::RefusedByAgent {
        "by the agent"
    } else if reason.rule() == Rule::Throttled {
        "by the cluster"
    } else {
        return None;
    };
    Some(format!("{who}: {said}"))
}
