//! `decree diff`: what another controller did differently from the decisions of a server whose agent is in shadow mode.

mod markdown;
mod report;
mod words;

use decree::v1::{self, Difference};

pub(crate) use self::report::report;
use crate::{
    age,
    args::{DiffArgs, FailOn, Scope},
    decision,
    exit::{Exit, Failure},
    page::COLUMNS,
    proto_json,
    server::{self, Server},
    streams::Io,
    table::Table,
};

const HEADERS: [&str; 6] = [
    "TIME",
    "REPLICASET",
    "SUBJECT",
    "DECIDED",
    "DONE",
    "DEPARTURE",
];

pub(crate) fn run(args: &DiffArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let scope = args.scope.scope()?;
    let mut answer = server::block_on(ask(args, &scope))?;
    if answer.shadows == 0 {
        let cause = "no agent in mode shadow is connected, so there is nothing to compare";
        let hint =
            "run server and agent next to the other controller: decree up --cluster kubernetes";
        return Err(Failure::new(Exit::Usage, cause).hint(hint));
    }
    answer
        .differences
        .retain(|it| scope.has(it.replica_set.as_ref()));
    if args.unexplained {
        answer.differences.retain(words::is_unexplained);
    }
    print(args, &answer, io)?;
    let fails = match args.fail_on {
        FailOn::Any => !answer.differences.is_empty(),
        FailOn::Unexplained => answer.differences.iter().any(words::is_unexplained),
        FailOn::Never => false,
    };
    Ok(if fails { Exit::No } else { Exit::Done })
}

async fn ask(args: &DiffArgs, scope: &Scope) -> Result<v1::ListDifferencesResponse, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    let request = v1::ListDifferencesRequest {
        cluster: args.inspection.cluster.clone(),
        namespace: scope.namespace.clone(),
        name: scope.name.clone(),
    };
    server.answer(server.inspection().list_differences(request).await)
}

fn print(
    args: &DiffArgs,
    answer: &v1::ListDifferencesResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let output = &args.print.output;
    if args.markdown {
        return Ok(markdown::write(answer, io.stdout)?);
    }
    if !output.is_for_people() {
        let json = proto_json::value("ListDifferencesResponse", answer)?;
        let sets = answer.differences.iter();
        let sets = sets.filter_map(|it| it.replica_set.as_ref());
        let mut names: Vec<_> = sets.map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return output.write(io.stdout, &json, &names);
    }
    if output.is_wide() && !answer.differences.is_empty() {
        return Ok(table(&answer.differences)
            .no_headers(args.print.no_headers)
            .write(io.stdout, "")?);
    }
    Ok(report(answer, COLUMNS, io.stdout)?)
}

fn table(differences: &[Difference]) -> Table {
    let mut table = Table::new(HEADERS);
    for difference in differences {
        table.row([
            age::time_text(difference.time.as_ref()),
            decision::path(difference.replica_set.as_ref()),
            words::subject(difference.subject()).to_owned(),
            difference.decided.clone(),
            difference.done.clone(),
            words::departure(difference.departure()).to_owned(),
        ]);
    }
    table
}
