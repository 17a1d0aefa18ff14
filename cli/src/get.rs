//! `decree get`: what a running server holds, as lists.

use std::{collections::BTreeSet, io, time::Duration};

use decree::v1::{self, ReplicaSetState};
use jiff::Timestamp;

use crate::{
    age,
    args::{GetArgs, Output, Resource},
    decision,
    exit::{Exit, Failure},
    proto_json,
    server::{self, Server},
    streams::Io,
    table::Table,
};

/// How many ReplicaSets are asked for at a time.
const PAGE_SIZE: i32 = 1_000;

pub(crate) fn run(args: &GetArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match args.resource {
        Resource::ReplicaSets => {
            let list = server::block_on(replica_sets(args))?;
            match args.inspection.output {
                Output::Json => {
                    let line = proto_json::Writer::new("ListReplicaSetsResponse")?.line(&list)?;
                    writeln!(io.stdout, "{line}")?;
                }
                Output::Table => write_replica_sets(&list.replica_sets, io)?,
            }
        }
        Resource::Sessions => {
            let list = server::block_on(sessions(args))?;
            match args.inspection.output {
                Output::Json => {
                    let line = proto_json::Writer::new("ListSessionsResponse")?.line(&list)?;
                    writeln!(io.stdout, "{line}")?;
                }
                Output::Table => write_sessions(&list.sessions, Timestamp::now(), io)?,
            }
        }
    }
    Ok(Exit::Done)
}

/// Asks for all pages, joined as one answer.
async fn replica_sets(args: &GetArgs) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    let mut client = server.inspection();
    let mut all = v1::ListReplicaSetsResponse::default();
    loop {
        let request = v1::ListReplicaSetsRequest {
            cluster: args.inspection.cluster.clone(),
            namespace: args.namespace.clone(),
            page_size: PAGE_SIZE,
            page_token: all.next_page_token,
        };
        let answer = client.list_replica_sets(request).await;
        let page = answer
            .map_err(|status| server.failure(&status))?
            .into_inner();
        all.replica_sets.extend(page.replica_sets);
        all.next_page_token = page.next_page_token;
        if all.next_page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn sessions(args: &GetArgs) -> Result<v1::ListSessionsResponse, Failure> {
    let server = Server::connect(&args.inspection.server).await?;
    let answer = server
        .inspection()
        .list_sessions(v1::ListSessionsRequest {})
        .await;
    let mut list = answer
        .map_err(|status| server.failure(&status))?
        .into_inner();
    let wanted = &args.inspection.cluster;
    list.sessions.retain(|session| {
        wanted.is_empty() || [&session.cluster_uid, &session.cluster_name].contains(&wanted)
    });
    Ok(list)
}

fn write_replica_sets(sets: &[v1::ReplicaSetSummary], io: &mut Io<'_>) -> io::Result<()> {
    let clusters: BTreeSet<_> = sets.iter().map(|set| &set.cluster).collect();
    let headers = [
        "NAMESPACE",
        "NAME",
        "DESIRED",
        "CURRENT",
        "READY",
        "AVAILABLE",
        "STATE",
        "REASON",
    ];
    if clusters.len() > 1 {
        let [
            namespace,
            name,
            desired,
            current,
            ready,
            available,
            state,
            reason,
        ] = headers;
        let mut table = Table::new([
            "CLUSTER", namespace, name, desired, current, ready, available, state, reason,
        ]);
        for set in sets {
            let [
                namespace,
                name,
                desired,
                current,
                ready,
                available,
                state,
                reason,
            ] = cells(set);
            let cluster = set.cluster.clone();
            table.row([
                cluster, namespace, name, desired, current, ready, available, state, reason,
            ]);
        }
        return write_or_say_none(&table, io);
    }
    let mut table = Table::new(headers);
    sets.iter().for_each(|set| table.row(cells(set)));
    write_or_say_none(&table, io)
}

fn cells(set: &v1::ReplicaSetSummary) -> [String; 8] {
    let v1::ObjectRef {
        namespace, name, ..
    } = set.replica_set.clone().unwrap_or_default();
    [
        namespace,
        name,
        set.replicas.to_string(),
        set.active.to_string(),
        set.ready.to_string(),
        set.available.to_string(),
        state(set.state()).to_owned(),
        set.reasons.first().map_or_else(String::new, reason),
    ]
}

/// Returns the word for how a ReplicaSet stands.
pub(crate) const fn state(state: ReplicaSetState) -> &'static str {
    match state {
        ReplicaSetState::Unspecified => "Unknown",
        ReplicaSetState::InSync => "InSync",
        ReplicaSetState::Queued => "Queued",
        ReplicaSetState::Acting => "Acting",
        ReplicaSetState::Waiting => "Waiting",
        ReplicaSetState::Quarantined => "Quarantined",
    }
}

/// Writes a reason as its rule and its detail.
pub(crate) fn reason(reason: &v1::Reason) -> String {
    let word = decision::word(reason.rule());
    if reason.detail.is_empty() {
        word.to_owned()
    } else {
        format!("{word}: {}", reason.detail)
    }
}

fn write_sessions(
    sessions: &[v1::SessionSummary],
    now: Timestamp,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let mut table = Table::new([
        "SESSION",
        "CLUSTER",
        "SHARD",
        "MODE",
        "SYNCED",
        "REPLICASETS",
        "PODS",
        "IN-FLIGHT",
        "EPOCH",
        "AGE",
    ]);
    for session in sessions {
        let name = match session.cluster_name.as_str() {
            "" => &session.cluster_uid,
            name => name,
        };
        table.row([
            session.session_id.clone(),
            name.to_owned(),
            if session.shard.is_empty() {
                "<all>".to_owned()
            } else {
                session.shard.clone()
            },
            mode(session.mode()).to_owned(),
            if session.synced { "True" } else { "False" }.to_owned(),
            session.replica_sets.to_string(),
            session.pods.to_string(),
            session.batches_in_flight.to_string(),
            session.epoch.to_string(),
            age_of(session.started.as_ref(), now),
        ]);
    }
    write_or_say_none(&table, io)
}

const fn mode(mode: v1::Mode) -> &'static str {
    match mode {
        v1::Mode::Unspecified | v1::Mode::Enforce => "Enforce",
        v1::Mode::Shadow => "Shadow",
        v1::Mode::DryRun => "DryRun",
    }
}

fn age_of(started: Option<&prost_types::Timestamp>, now: Timestamp) -> String {
    let span = started
        .and_then(age::wire_time)
        .map(|started| now.duration_since(started));
    let Some(span) = span else {
        return "<unknown>".to_owned();
    };
    age::human(Duration::try_from(span).unwrap_or_default())
}

/// Writes a table, or as kubectl says that there is nothing in it.
fn write_or_say_none<const N: usize>(table: &Table<N>, io: &mut Io<'_>) -> io::Result<()> {
    if table.is_empty() {
        return writeln!(io.stderr, "No resources found.");
    }
    table.write(io.stdout, "")
}
