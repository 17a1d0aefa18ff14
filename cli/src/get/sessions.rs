//! Sessions as rows.

use std::time::Duration;

use decree::v1;
use jiff::Timestamp;

use crate::{age, args::GetArgs, exit::Failure, proto_json, streams::Io, table::Table};

const HEADERS: [&str; 10] = [
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
];
/// The additional columns of `-o wide`.
const WIDE: [&str; 3] = ["CLUSTER-UID", "AGENT", "VIEW-AGE"];

pub(super) fn print(
    args: &GetArgs,
    list: &v1::ListSessionsResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    if !args.print.output.is_for_people() {
        let json = proto_json::value("ListSessionsResponse", list)?;
        return args.print.output.write(io.stdout, &json, &[]);
    }
    let (is_wide, now) = (args.print.output.is_wide(), Timestamp::now());
    let wide = WIDE.into_iter().filter(|_| is_wide);
    let mut table = Table::new(HEADERS.into_iter().chain(wide)).no_headers(args.print.no_headers);
    for session in &list.sessions {
        let wide = wide_cells(session).into_iter().filter(|_| is_wide);
        table.row(cells(session, now).into_iter().chain(wide));
    }
    Ok(table.write(io.stdout, "")?)
}

fn cells(session: &v1::SessionSummary, now: Timestamp) -> [String; 10] {
    let shard = match session.shard.as_str() {
        "" => "<all>",
        shard => shard,
    };
    [
        session.session_id.clone(),
        cluster(session).to_owned(),
        shard.to_owned(),
        mode(session.mode()).to_owned(),
        if session.synced { "True" } else { "False" }.to_owned(),
        session.replica_sets.to_string(),
        session.pods.to_string(),
        session.batches_in_flight.to_string(),
        session.epoch.to_string(),
        age_of(session.started.as_ref(), now),
    ]
}

fn wide_cells(session: &v1::SessionSummary) -> [String; 3] {
    [
        session.cluster_uid.clone(),
        session.agent_instance.clone(),
        view_age(session).unwrap_or_else(|| "<unknown>".to_owned()),
    ]
}

/// The age of the view, in seconds.
pub(crate) fn view_age(session: &v1::SessionSummary) -> Option<String> {
    let age = Duration::try_from(session.view_age?).unwrap_or_default();
    Some(format!("{:.1}s", age.as_secs_f64()))
}

/// The name of the cluster, or else its uid.
pub(crate) fn cluster(session: &v1::SessionSummary) -> &str {
    match session.cluster_name.as_str() {
        "" => &session.cluster_uid,
        name => name,
    }
}

/// The word for a mode.
pub(crate) const fn mode(mode: v1::Mode) -> &'static str {
    match mode {
        v1::Mode::Unspecified | v1::Mode::Enforce => "Enforce",
        v1::Mode::Shadow => "Shadow",
        v1::Mode::DryRun => "DryRun",
    }
}

fn age_of(started: Option<&prost_types::Timestamp>, now: Timestamp) -> String {
    let Some(started) = started.and_then(age::wire_time) else {
        return "<unknown>".to_owned();
    };
    age::human(Duration::try_from(now.duration_since(started)).unwrap_or_default())
}
