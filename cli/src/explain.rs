//! `decree explain`: how one ReplicaSet stands, what it waits for, and why.

use std::io::{self, Write};

use decree::v1::{self, Rule};

use crate::{
    age,
    args::{ExplainArgs, Named},
    decision,
    exit::{Exit, Failure},
    get, proto_json, record, refusal,
    server::{self, Server},
    streams::Io,
    table::one_line,
};

mod ask;
mod decisions;
mod status;
mod timeline;
mod why;

use ask::ask;

pub(crate) fn run(args: &ExplainArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let names = args.namespace.resolve(&args.names)?;
    server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        if let (Some(pod), [named]) = (&args.why, names.as_slice()) {
            return why::run(&server, args, named, pod, io).await;
        }
        if args.why.is_some() {
            let cause = "--why is about a pod of one ReplicaSet";
            return Err(Failure::new(Exit::Usage, cause).hint("name one ReplicaSet"));
        }
        for (at, named) in names.iter().enumerate() {
            if at > 0 && args.print.output.is_for_people() {
                writeln!(io.stdout)?;
            }
            let answer = ask(&server, args, named).await?;
            print(args, named, &answer, io)?;
        }
        Ok(Exit::Done)
    })
}

fn print(
    args: &ExplainArgs,
    named: &Named,
    answer: &v1::GetReplicaSetResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    if args.print.output.is_for_people() {
        return Ok(write(args, answer, io.stdout)?);
    }
    let json = proto_json::value("GetReplicaSetResponse", answer)?;
    args.print.output.write(io.stdout, &json, &[&named.name])
}

fn write(
    args: &ExplainArgs,
    answer: &v1::GetReplicaSetResponse,
    out: &mut dyn Write,
) -> io::Result<()> {
    let v1::GetReplicaSetResponse {
        summary,
        in_flight,
        next_sync,
        failures,
        decisions,
        timeline,
    } = answer;
    let summary = summary.clone().unwrap_or_default();
    let mut line = |label: &str, text: &str| writeln!(out, "{label:<13}{}", one_line(text));
    line("Name:", &decision::path(summary.replica_set.as_ref()))?;
    line("Cluster:", &summary.cluster)?;
    line("Replicas:", &replicas(&summary))?;
    line("State:", get::state(summary.state()))?;
    let (held_back, because): (Vec<_>, Vec<_>) = summary
        .reasons
        .iter()
        .partition(|it| obstacle(it).is_some());
    for (index, reason) in because.into_iter().enumerate() {
        line(
            if index == 0 { "Because:" } else { "" },
            &record::reason(reason),
        )?;
    }
    if summary.state() != v1::ReplicaSetState::InSync
        && let Some(said) = refusal::newest(timeline)
    {
        line("Refused:", &said)?;
    }
    for said in held_back.into_iter().filter_map(obstacle) {
        line("Held back:", &said)?;
    }
    line(
        "In flight:",
        if in_flight.is_empty() {
            "nothing"
        } else {
            in_flight
        },
    )?;
    let next = next_sync.as_ref().map(|time| age::time_text(Some(time)));
    line(
        "Next sync:",
        &next.unwrap_or_else(|| "at the next event".to_owned()),
    )?;
    line("Failures:", &format!("{failures} in a row"))?;
    if decisions.is_empty() {
        writeln!(out, "Decisions:   none yet")?;
    } else {
        writeln!(out, "Decisions:")?;
        decisions::write(args, decisions, out)?;
    }
    if args.all {
        timeline::write(timeline, out)?;
    }
    Ok(())
}

/// Says who held the last attempt back, with its words, where a reason is that.
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

fn replicas(summary: &v1::ReplicaSetSummary) -> String {
    format!(
        "{} desired, {} current, {} ready, {} available, {} terminating",
        summary.replicas, summary.active, summary.ready, summary.available, summary.terminating,
    )
}
