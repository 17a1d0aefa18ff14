//! `decree watch`: the decisions of a running server as they are made.

use std::io;

use decree::v1;

use crate::{
    age,
    args::{Scope, WatchArgs},
    decision,
    exit::{Exit, Failure},
    format::PrintArgs,
    proto_json, record, refusal,
    server::{self, Server},
    streams::Io,
    table::TableStream,
};

const HEADERS: [&str; 6] = ["TIME", "REPLICASET", "ACTION", "COUNT", "REASON", "PODS"];
/// The minimum widths of the columns, so that later rows are rarely wider.
const WIDTHS: [usize; 6] = [24, 24, 6, 5, 40, 4];

struct Printer<'a> {
    args: &'a PrintArgs,
    stream: TableStream,
    writer: proto_json::Writer,
}

pub(crate) fn run(args: &WatchArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let scope = args.scope.scope()?;
    server::block_on(follow(args, &scope, io))
}

async fn follow(args: &WatchArgs, scope: &Scope, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    tell_what_is_connected(&server, &args.inspection.cluster, io).await?;
    let request = v1::WatchDecisionsRequest {
        cluster: args.inspection.cluster.clone(),
        namespace: scope.namespace.clone(),
        name: scope.name.clone(),
    };
    let answer = server.inspection().watch_decisions(request).await;
    let mut decisions = answer
        .map_err(|status| server.failure(&status))?
        .into_inner();
    let mut printer = Printer::new(&args.print, io)?;
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
        if let Some(record) = &next.decision {
            if !scope.has(record.replica_set.as_ref()) {
                continue;
            }
            left = left.map(|left| left.saturating_sub(1));
        }
        printer.print(&next, io)?;
        if let Some(record) = &next.decision
            && args.print.output.is_for_people()
            && let Some(said) = refusal::before(&server, record).await
        {
            printer.print_refusal(record, said, io)?;
        }
    }
    Ok(Exit::Done)
}

/// Fails if the named cluster is not connected. Without a name, an agent may still connect, so this only prints a notice.
async fn tell_what_is_connected(
    server: &Server,
    cluster: &str,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    match server.check_connected(cluster).await {
        Err(nothing) if cluster.is_empty() && nothing.exit == Exit::No => {
            writeln!(io.stderr, "notice: {}; waiting for one", nothing.cause)?;
            Ok(())
        }
        checked => checked,
    }
}

// === impl Printer ===

impl<'a> Printer<'a> {
    fn new(args: &'a PrintArgs, io: &mut Io<'_>) -> Result<Self, Failure> {
        let mut stream = TableStream::new(WIDTHS);
        if args.output.is_for_people() && !args.no_headers {
            stream.write(io.stdout, &HEADERS.map(str::to_owned))?;
        }
        io.stdout.flush()?;
        Ok(Self {
            args,
            stream,
            writer: proto_json::Writer::new("WatchDecisionsResponse"),
        })
    }

    fn print(&mut self, next: &v1::WatchDecisionsResponse, io: &mut Io<'_>) -> Result<(), Failure> {
        if self.args.output.is_for_people() {
            print_row(&mut self.stream, next, io)?;
        } else {
            let set = next
                .decision
                .iter()
                .filter_map(|record| record.replica_set.as_ref());
            let names: Vec<_> = set.map(|set| set.name.as_str()).collect();
            let json = self.writer.value(next)?;
            self.args.output.write(io.stdout, &json, &names)?;
        }
        Ok(io.stdout.flush()?)
    }

    /// Writes a row for the refusal of the cluster, below the decision to report it in the status.
    fn print_refusal(
        &mut self,
        record: &v1::DecisionRecord,
        said: String,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let cells = [
            age::time_text(record.time.as_ref()),
            decision::path(record.replica_set.as_ref()),
            "refused".to_owned(),
            String::new(),
            said,
            String::new(),
        ];
        self.stream.write(io.stdout, &cells)?;
        Ok(io.stdout.flush()?)
    }
}

fn print_row(
    stream: &mut TableStream,
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
        record
            .reasons
            .first()
            .map_or_else(String::new, record::reason),
        record::targets(record),
    ];
    stream.write(io.stdout, &cells)
}
