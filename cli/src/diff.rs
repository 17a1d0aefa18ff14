//! `decree diff`: what another controller did otherwise than a server decided, while its agent only watched.

use std::io;

use decree::v1;

use crate::{
    age,
    args::{DiffArgs, Output},
    decision,
    exit::{Exit, Failure},
    proto_json,
    server::{self, Server},
    streams::Io,
    table::Table,
};

pub(crate) fn run(args: &DiffArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut answer = server::block_on(ask(args))?;
    if answer.shadows == 0 {
        let cause = "no agent in mode shadow is connected, so there is nothing to compare";
        let hint =
            "run one next to the other controller: decree-agent --cluster kubernetes --mode shadow";
        return Err(Failure::new(Exit::Usage, cause).hint(hint));
    }
    if args.unexplained {
        let is_surprise = |it: &v1::Difference| it.departure() == v1::Departure::Unspecified;
        answer.differences.retain(is_surprise);
    }
    match args.inspection.output {
        Output::Json => {
            let line = proto_json::Writer::new("ListDifferencesResponse")?.line(&answer)?;
            writeln!(io.stdout, "{line}")?;
        }
        Output::Table => write(&answer, io)?,
    }
    Ok(if answer.differences.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

async fn ask(args: &DiffArgs) -> Result<v1::ListDifferencesResponse, Failure> {
    let (namespace, name) = args.scope.names();
    let server = Server::connect(&args.inspection.server).await?;
    let request = v1::ListDifferencesRequest {
        cluster: args.inspection.cluster.clone(),
        namespace,
        name,
    };
    let answer = server.inspection().list_differences(request).await;
    let answer = answer.map_err(|status| server.failure(&status))?;
    Ok(answer.into_inner())
}

fn write(answer: &v1::ListDifferencesResponse, io: &mut Io<'_>) -> io::Result<()> {
    if answer.differences.is_empty() {
        let compared = answer.compared;
        return writeln!(io.stderr, "No differences in {compared} comparisons.");
    }
    let headers = [
        "TIME",
        "REPLICASET",
        "SUBJECT",
        "DECIDED",
        "DONE",
        "DEPARTURE",
    ];
    let mut table = Table::new(headers);
    for difference in &answer.differences {
        table.row([
            age::time_text(difference.time.as_ref()),
            decision::path(difference.replica_set.as_ref()),
            subject(difference.subject()).to_owned(),
            difference.decided.clone(),
            difference.done.clone(),
            departure(difference.departure()).to_owned(),
        ]);
    }
    table.write(io.stdout, "")
}

const fn subject(subject: v1::Subject) -> &'static str {
    match subject {
        v1::Subject::Unspecified => "Unknown",
        v1::Subject::Count => "Count",
        v1::Subject::Victims => "Victims",
        v1::Subject::Status => "Status",
        v1::Subject::Adoption => "Adoption",
    }
}

const fn departure(departure: v1::Departure) -> &'static str {
    match departure {
        v1::Departure::Unspecified => "<none>",
        v1::Departure::OrderOfDeletion => "OrderOfDeletion",
        v1::Departure::ReplicaFailure => "ReplicaFailure",
    }
}
