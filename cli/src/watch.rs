//! `decree watch`: the decisions of a running server as they are made.

use std::time::Duration;

use decree_api::{json::Json, v1};
use tokio::time::{sleep, timeout};
use tonic::Streaming;
use tonic_types::StatusExt;

use crate::{
    age,
    args::{Named, Scope, WatchArgs},
    cause, decision,
    exit::{Exit, Failure},
    format::Format,
    get,
    page::{Io, Page},
    pages,
    server::{self, Server},
    source::{self, Source},
    table::TableStream,
};

const HEADERS: [&str; 6] = ["TIME", "REPLICASET", "ACTION", "COUNT", "REASON", "PODS"];
/// The minimum widths of the columns, so that later rows are rarely wider.
const WIDTHS: [usize; 6] = [24, 24, 6, 5, 40, 4];

/// How often the command looks whether the named ReplicaSets are still there.
const PERIOD: Duration = Duration::from_secs(1);
/// The cause if a stream ends without a status.
const ENDED: &str = "the server ended the watch";
/// The reason of a refusal: the server does not have all decisions since the watch broke.
const EXPIRED: &str = "RESUME_TOKEN_EXPIRED";
/// How often the command tries to continue a watch that broke, once a second.
const TRIES: usize = 10;

struct Printer {
    output: Format,
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
            (args.print.output, true),
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
    (output, has_statuses): (Format, bool),
    mut left: Option<u64>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let sessions = match server.check_connected(cluster).await {
        // An agent of an unnamed cluster may still connect.
        Err(nothing) if cluster.is_empty() && nothing.exit == Exit::No => {
            io.notice(&format!("{}; waiting for one", nothing.cause))?;
            Vec::new()
        }
        checked => checked?,
    };
    for session in &sessions {
        if let Some(mode) = cause::mode_without_effect(session.mode()) {
            let cluster = get::cluster(session);
            let agent = format!("the agent of {cluster} is in {mode} mode");
            io.notice(&format!("{agent}: its decisions are not executed"))?;
        }
    }
    let mut request = v1::WatchDecisionsRequest {
        cluster: cluster.to_owned(),
        namespace: scope.namespace.clone(),
        name: scope.name.clone(),
        ..v1::WatchDecisionsRequest::default()
    };
    let decisions = server.inspection().watch_decisions(request.clone()).await;
    let mut decisions = server.answer(decisions)?;
    let mut watched = None;
    look(server, cluster, scope, &mut watched, io).await?;
    let mut printer = Printer::new(output, io)?;
    while left != Some(0) {
        let next = match timeout(PERIOD, decisions.message()).await {
            Err(_) => look(server, cluster, scope, &mut watched, io)
                .await
                .map(|()| None),
            Ok(Ok(Some(next))) => Ok(Some(next)),
            Ok(Ok(None)) => Err(Failure::new(Exit::Unreachable, ENDED)),
            Ok(Err(status)) => Err(server.failure(&status)),
        };
        let mut next = match next {
            Ok(Some(next)) => next,
            Ok(None) => continue,
            Err(lost) => {
                decisions = resume(server, &mut request, lost, io).await?;
                continue;
            }
        };
        request.resume_token = std::mem::take(&mut next.resume_token);
        if let Some(record) = &next.decision {
            if !scope.has(record.replica_set.as_ref()) {
                continue;
            }
            left = left.map(|left| left.saturating_sub(1));
        }
        let is_status = next
            .decision
            .as_ref()
            .is_some_and(|it| it.action() == v1::Action::WriteStatus);
        if has_statuses || !is_status {
            printer.print(&next, io)?;
        }
    }
    Ok(())
}

/// Continues a watch that broke after the last message that came. Says so if decisions may be missing. Fails if the server does not come
/// back, or refuses.
async fn resume(
    server: &Server,
    request: &mut v1::WatchDecisionsRequest,
    lost: Failure,
    io: &mut Io<'_>,
) -> Result<Streaming<v1::WatchDecisionsResponse>, Failure> {
    if lost.exit == Exit::Unreachable {
        io.notice(&format!("{}; trying again", lost.cause))?;
        for _ in 0..TRIES {
            sleep(PERIOD).await;
            let resumed = server.inspection().watch_decisions(request.clone()).await;
            let status = match resumed {
                Ok(decisions) => {
                    if request.resume_token.is_empty() {
                        io.notice("decisions before now may have been missed")?;
                    }
                    return Ok(decisions.into_inner());
                }
                Err(status) => status,
            };
            let details = status.get_error_details();
            let failure = server.failure(&status);
            if details.error_info().is_some_and(|it| it.reason == EXPIRED) {
                request.resume_token.clear();
            } else if failure.exit != Exit::Unreachable {
                return Err(failure);
            }
        }
    }
    Err(lost)
}

/// Fails if one of the names is wrong, as soon as the agents have sent all ReplicaSets. From then on, `watched` has the named ReplicaSets,
/// and this tells once of each that is gone.
async fn look(
    server: &Server,
    cluster: &str,
    scope: &Scope,
    watched: &mut Option<Vec<Named>>,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let source = Source::of_server(server, cluster);
    if let Some(watched) = watched {
        for named in source.missing_among(watched).await? {
            io.notice(&format!("{} is gone", named.path()))?;
            watched.retain(|it| *it != named);
        }
        return Ok(());
    }
    let sessions = server.sessions(cluster).await?.sessions;
    if sessions.is_empty() || sessions.iter().any(|it| !it.synced) {
        return Ok(());
    }
    let missing = source.missing_among(&scope.only).await?;
    source.check_found(&missing, Vec::new()).await?;
    let namespace = &scope.namespace;
    let known = pages::replica_sets(server, cluster, namespace, 1).await?;
    if known.replica_sets.is_empty() {
        let said = get::nothing_in(namespace);
        io.notice(&format!("{said} Waiting for decisions."))?;
    }
    *watched = Some(scope.only.clone());
    Ok(())
}

impl Printer {
    fn new(output: Format, io: &mut Io<'_>) -> Result<Self, Failure> {
        let mut stream = TableStream::new(Page::new(io), HEADERS).at_least(WIDTHS);
        if output.is_for_people() {
            stream.write_headers(io.stdout)?;
        }
        io.stdout.flush()?;
        Ok(Self {
            output,
            stream,
            json: Json::default(),
        })
    }

    fn print(&mut self, next: &v1::WatchDecisionsResponse, io: &mut Io<'_>) -> Result<(), Failure> {
        let v1::WatchDecisionsResponse {
            decision,
            missed,
            resume_token: _,
        } = next;
        if !self.output.is_for_people() {
            let set = decision.iter().filter_map(|it| it.replica_set.as_ref());
            let names: Vec<_> = set.map(|set| set.name.as_str()).collect();
            let json = self.json.value("WatchDecisionsResponse", next)?;
            self.output.write(io.stdout, &json, &names)?;
            return Ok(io.stdout.flush()?);
        }
        if *missed > 0 {
            io.notice(&format!("{missed} decisions were missed"))?;
        }
        if let Some(record) = decision {
            let reason = record.reasons.first();
            let cells = [
                age::time_text(record.decide_time.as_ref()),
                decision::path(record.replica_set.as_ref()),
                decision::action(record.action()).to_owned(),
                record.operations.to_string(),
                reason.map_or_else(String::new, decision::reason),
                decision::targets(record),
            ];
            self.stream.write(io.stdout, cells)?;
            io.stdout.flush()?;
        }
        Ok(())
    }
}
