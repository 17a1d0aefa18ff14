//! `decree watch`: the decisions of a running server as they are made.

use std::io;

use decree::v1;

use crate::{
    age,
    args::{Output, WatchArgs},
    decision,
    exit::{Exit, Failure},
    explain, get, proto_json,
    server::{self, Server},
    streams::Io,
    table::Stream,
};

const HEADERS: [&str; 6] = ["TIME", "REPLICASET", "ACTION", "COUNT", "REASON", "PODS"];
/// The least widths of the columns: a row that comes later is rarely wider.
const WIDTHS: [usize; 6] = [24, 24, 6, 5, 40, 4];

/// Writes decisions in one of the two ways.
enum Printer {
    Table(Stream<6>),
    Json(proto_json::Writer),
}

pub(crate) fn run(args: &WatchArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    server::block_on(follow(args, io))
}

async fn follow(args: &WatchArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    let answer = server.inspection().watch_decisions(request(args)).await;
    let mut decisions = answer
        .map_err(|status| server.failure(&status))?
        .into_inner();
    let mut printer = Printer::new(args.inspection.output, io)?;
    let mut left = args.count;
    while left != Some(0) {
        let next = decisions
            .message()
            .await
            .map_err(|status| server.failure(&status))?;
        let Some(next) = next else {
            return Err(
                Failure::new(Exit::Unreachable, "the server ended the watch")
                    .hint("start it again once the server is back"),
            );
        };
        if next.decision.is_some() {
            left = left.map(|left| left.saturating_sub(1));
        }
        printer.print(&next, io)?;
    }
    Ok(Exit::Done)
}

fn request(args: &WatchArgs) -> v1::WatchDecisionsRequest {
    let (namespace, name) = args.scope.names();
    v1::WatchDecisionsRequest {
        cluster: args.inspection.cluster.clone(),
        namespace,
        name,
    }
}

// === impl Printer ===

impl Printer {
    fn new(output: Output, io: &mut Io<'_>) -> Result<Self, Failure> {
        let printer = match output {
            Output::Json => Self::Json(proto_json::Writer::new("WatchDecisionsResponse")?),
            Output::Table => {
                let mut stream = Stream::new(WIDTHS);
                stream.write(io.stdout, &HEADERS.map(str::to_owned))?;
                Self::Table(stream)
            }
        };
        io.stdout.flush()?;
        Ok(printer)
    }

    fn print(&mut self, next: &v1::WatchDecisionsResponse, io: &mut Io<'_>) -> Result<(), Failure> {
        match self {
            Self::Json(writer) => writeln!(io.stdout, "{}", writer.line(next)?)?,
            Self::Table(stream) => print_row(stream, next, io)?,
        }
        Ok(io.stdout.flush()?)
    }
}

fn print_row(
    stream: &mut Stream<6>,
    next: &v1::WatchDecisionsResponse,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let v1::WatchDecisionsResponse {
        decision: record,
        missed,
    } = next;
    if *missed > 0 {
        writeln!(io.stderr, "notice: {missed} decisions were missed")?;
    }
    let Some(record) = record else { return Ok(()) };
    let cells = [
        age::time_text(record.time.as_ref()),
        decision::path(record.replica_set.as_ref()),
        record.action.clone(),
        record.operations.to_string(),
        record.reasons.first().map_or_else(String::new, get::reason),
        explain::targets(record),
    ];
    stream.write(io.stdout, &cells)
}
