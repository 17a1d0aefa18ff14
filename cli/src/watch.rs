//! `decree watch`: the decisions of a running server as they are made.

use std::{io, time::Duration};

use decree::{json::Json, v1};
use tokio::time::timeout;
use tonic::{Status, Streaming};

use crate::{
    age,
    args::{Named, Scope, WatchArgs},
    cause, decision,
    exit::{Exit, Failure},
    format::PrintArgs,
    get,
    page::{Io, Page},
    pages, refusal,
    server::{self, Server},
    source::{self, Source},
    table::{TableStream, one_line},
};

const HEADERS: [&str; 6] = ["TIME", "REPLICASET", "ACTION", "COUNT", "REASON", "PODS"];
/// The minimum widths of the columns, so that later rows are rarely wider.
const WIDTHS: [usize; 6] = [24, 24, 6, 5, 40, 4];

/// How often the command looks whether the named ReplicaSets are still there.
const PERIOD: Duration = Duration::from_secs(1);

struct Printer<'a> {
    args: &'a PrintArgs,
    stream: TableStream,
    json: Json,
}

pub(crate) fn run(args: &WatchArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let cluster = &args.inspection.cluster;
    server::block_on(async {
        let server = Server::connect(&args.inspection.server).await?;
        let source = Source::of_server(&server, cluster);
        let scope = source::scope(&args.scope, &source).await?;
        follow(
            &server,
            cluster,
            &scope,
            (&args.print, true),
            args.count,
            io,
        )
        .await
    })?;
    Ok(Exit::Done)
}

/// Prints the decisions on the ReplicaSets of a scope, `left` of them or all, with or without status writes.
pub(crate) async fn follow(
    server: &Server,
    cluster: &str,
    scope: &Scope,
    (print, has_statuses): (&PrintArgs, bool),
    mut left: Option<u64>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let sessions = match server.check_connected(cluster).await {
        // An agent of an unnamed cluster may still connect.
        Err(nothing) if cluster.is_empty() && nothing.exit == Exit::No => {
            writeln!(io.stderr, "notice: {}; waiting for one", nothing.cause)?;
            Vec::new()
        }
        checked => checked?,
    };
    for session in &sessions {
        if let Some(mode) = cause::mode_without_effect(session.mode()) {
            let cluster = one_line(get::cluster(session));
            let agent = format!("the agent of {cluster} is in {mode} mode");
            writeln!(io.stderr, "notice: {agent}: its decisions are not executed")?;
        }
    }
    let mut decisions = open(server, cluster, scope).await?;
    let mut watched = Watched::default();
    watched.look(server, cluster, scope, io).await?;
    let mut printer = Printer::new(print, io)?;
    while left != Some(0) {
        let Ok(next) = timeout(PERIOD, decisions.message()).await else {
            watched.look(server, cluster, scope, io).await?;
            continue;
        };
        let next = received(server, next)?;
        if let Some(record) = &next.decision {
            if !scope.has(record.replica_set.as_ref()) {
                continue;
            }
            left = left.map(|left| left.saturating_sub(1));
        }
        let is_status = next
            .decision
            .as_ref()
            .is_some_and(|it| it.action == "status");
        if has_statuses || !is_status {
            printer.print(&next, io)?;
        }
        if let Some(record) = &next.decision
            && print.output.is_for_people()
            && let Some(said) = refusal::before(server, record).await
        {
            // Below the decision to report the refusal in the status.
            printer.print_row(record, ["refused", "", &said, ""], io)?;
        }
    }
    Ok(())
}

/// The named ReplicaSets of which decisions are awaited.
#[derive(Default)]
struct Watched {
    named: Vec<Named>,
    is_checked: bool,
}

impl Watched {
    /// Fails if one of the names is wrong, as soon as the agents have sent all ReplicaSets. From then on, tells once of each that is gone.
    async fn look(
        &mut self,
        server: &Server,
        cluster: &str,
        scope: &Scope,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let source = Source::of_server(server, cluster);
        if self.is_checked {
            for named in source.missing_among(&self.named).await? {
                writeln!(io.stderr, "notice: {} is gone", named.path())?;
                self.named.retain(|it| *it != named);
            }
            return Ok(());
        }
        let sessions = server.sessions(cluster).await?.sessions;
        if sessions.is_empty() || sessions.iter().any(|it| !it.synced) {
            return Ok(());
        }
        self.is_checked = true;
        let missing = source.missing_among(&scope.only).await?;
        source.check_found(&missing, Vec::new()).await?;
        self.named.clone_from(&scope.only);
        let namespace = &scope.namespace;
        let known = pages::replica_sets(server, cluster, namespace, 1).await?;
        if known.replica_sets.is_empty() {
            let said = get::nothing_in(namespace);
            writeln!(io.stderr, "notice: {said} Waiting for decisions.")?;
        }
        Ok(())
    }
}

/// Opens the stream of the decisions on the ReplicaSets of a scope.
async fn open(
    server: &Server,
    cluster: &str,
    scope: &Scope,
) -> Result<Streaming<v1::WatchDecisionsResponse>, Failure> {
    let request = v1::WatchDecisionsRequest {
        cluster: cluster.to_owned(),
        namespace: scope.namespace.clone(),
        name: scope.name.clone(),
    };
    server.answer(server.inspection().watch_decisions(request).await)
}

/// A message of the stream. The end of the stream is a failure, because only the server ends it.
fn received(
    server: &Server,
    message: Result<Option<v1::WatchDecisionsResponse>, Status>,
) -> Result<v1::WatchDecisionsResponse, Failure> {
    let message = message.map_err(|status| server.failure(&status))?;
    message.ok_or_else(|| {
        Failure::new(Exit::Unreachable, "the server ended the watch")
            .hint("start it again once the server is back")
    })
}

impl<'a> Printer<'a> {
    fn new(args: &'a PrintArgs, io: &mut Io<'_>) -> Result<Self, Failure> {
        let mut stream = TableStream::new(Page::new(io), HEADERS).at_least(WIDTHS);
        if args.output.is_for_people() && !args.no_headers {
            stream.write_headers(io.stdout)?;
        }
        io.stdout.flush()?;
        Ok(Self {
            args,
            stream,
            json: Json::default(),
        })
    }

    fn print(&mut self, next: &v1::WatchDecisionsResponse, io: &mut Io<'_>) -> Result<(), Failure> {
        let v1::WatchDecisionsResponse { decision, missed } = next;
        if !self.args.output.is_for_people() {
            let set = decision.iter().filter_map(|it| it.replica_set.as_ref());
            let names: Vec<_> = set.map(|set| set.name.as_str()).collect();
            let json = self.json.value("WatchDecisionsResponse", next)?;
            self.args.output.write(io.stdout, &json, &names)?;
            return Ok(io.stdout.flush()?);
        }
        if *missed > 0 {
            writeln!(io.stderr, "notice: {missed} decisions were missed")?;
        }
        if let Some(record) = decision {
            let reason = record.reasons.first();
            let reason = reason.map_or_else(String::new, decision::reason);
            let (count, pods) = (record.operations.to_string(), decision::targets(record));
            self.print_row(record, [&record.action, &count, &reason, &pods], io)?;
        }
        Ok(())
    }

    fn print_row(
        &mut self,
        record: &v1::DecisionRecord,
        cells: [&str; 4],
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        let time = age::time_text(record.time.as_ref());
        let set = decision::path(record.replica_set.as_ref());
        let cells = cells.map(str::to_owned);
        let cells = [time, set].into_iter().chain(cells);
        self.stream.write(io.stdout, cells)?;
        io.stdout.flush()
    }
}
