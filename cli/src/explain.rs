//! `decree explain`: how one ReplicaSet stands, what it waits for, and why.

use std::io::{self, Write};

use decree::v1;

use crate::{
    age,
    args::{ExplainArgs, Named, Output},
    decision,
    exit::{Exit, Failure},
    get, proto_json,
    server::{self, Server},
    streams::Io,
    table::{Table, one_line},
};

pub(crate) fn run(args: &ExplainArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let answer = server::block_on(ask(args))?;
    match args.inspection.output {
        Output::Json => {
            let line = proto_json::Writer::new("GetReplicaSetResponse")?.line(&answer)?;
            writeln!(io.stdout, "{line}")?;
        }
        Output::Table => write(&answer, io.stdout)?,
    }
    Ok(Exit::Done)
}

async fn ask(args: &ExplainArgs) -> Result<v1::GetReplicaSetResponse, Failure> {
    let Named { namespace, name } = args.replica_set.clone();
    let server = Server::connect(&args.inspection.server).await?;
    let cluster = args.inspection.cluster.clone();
    let request = v1::GetReplicaSetRequest {
        cluster,
        namespace,
        name,
    };
    let answer = server.inspection().get_replica_set(request).await;
    Ok(answer
        .map_err(|status| server.failure(&status))?
        .into_inner())
}

fn write(answer: &v1::GetReplicaSetResponse, out: &mut dyn Write) -> io::Result<()> {
    let v1::GetReplicaSetResponse {
        summary,
        in_flight,
        next_sync,
        failures,
        decisions,
    } = answer;
    let summary = summary.clone().unwrap_or_default();
    let mut line = |label: &str, text: &str| writeln!(out, "{label:<13}{}", one_line(text));
    line("Name:", &decision::path(summary.replica_set.as_ref()))?;
    line("Cluster:", &summary.cluster)?;
    line("Replicas:", &replicas(&summary))?;
    line("State:", get::state(summary.state()))?;
    for (index, reason) in summary.reasons.iter().enumerate() {
        line(
            if index == 0 { "Because:" } else { "" },
            &get::reason(reason),
        )?;
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
        return writeln!(out, "Decisions:   none yet");
    }
    writeln!(out, "Decisions:")?;
    write_decisions(decisions, out)
}

fn replicas(summary: &v1::ReplicaSetSummary) -> String {
    format!(
        "{} desired, {} current, {} ready, {} available, {} terminating",
        summary.replicas, summary.active, summary.ready, summary.available, summary.terminating,
    )
}

fn write_decisions(records: &[v1::DecisionRecord], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(["TIME", "ACTION", "COUNT", "REASON", "PODS"]);
    for record in records {
        table.row([
            age::time_text(record.time.as_ref()),
            record.action.clone(),
            record.operations.to_string(),
            record.reasons.first().map_or_else(String::new, get::reason),
            targets(record),
        ]);
    }
    table.write(out, "  ")
}

/// Names the pods of a decision; a victim with the rule that chose it.
pub(crate) fn targets(record: &v1::DecisionRecord) -> String {
    let each = record.targets.iter().map(|target| match &target.reason {
        Some(reason) => format!("{} ({})", target.name, decision::word(reason.rule())),
        None => target.name.clone(),
    });
    let mut text = each.collect::<Vec<_>>().join(", ");
    let left = unnamed(record);
    if !record.targets.is_empty() && left > 0 {
        text.push_str(&format!(" and {left} more"));
    }
    text
}

/// Returns how many operations of a decision are not named one by one.
pub(crate) fn unnamed(record: &v1::DecisionRecord) -> usize {
    usize::try_from(record.operations)
        .unwrap_or(0)
        .saturating_sub(record.targets.len())
}
