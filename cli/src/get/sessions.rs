//! Sessions as rows.

use std::time::Duration;

use decree::v1;
use jiff::Timestamp;

use crate::{age, args::GetArgs, exit::Failure, page::Page, proto_json, streams::Io, table::Table};

/// The header of a column, and its cell for a session.
type Column = (&'static str, fn(&v1::SessionSummary) -> String);

/// The number of columns without `-o wide`, which fit a terminal of 80 columns.
const NARROW: usize = 7;
const COLUMNS: [Column; 13] = [
    ("CLUSTER", |session| cluster(session).to_owned()),
    ("SHARD", |session| match session.shard.as_str() {
        "" => "<all>".to_owned(),
        shard => shard.to_owned(),
    }),
    ("MODE", |session| mode(session.mode()).to_owned()),
    ("SYNCED", |session| {
        if session.synced { "True" } else { "False" }.to_owned()
    }),
    ("REPLICASETS", |session| session.replica_sets.to_string()),
    ("PODS", |session| session.pods.to_string()),
    ("AGE", |session| {
        let age = age::since(session.started.as_ref(), Timestamp::now());
        age.map_or_else(|| UNKNOWN.to_owned(), age::human)
    }),
    ("IN-FLIGHT", |session| session.batches_in_flight.to_string()),
    ("EPOCH", |session| session.epoch.to_string()),
    ("VIEW-AGE", |session| {
        view_age(session).unwrap_or_else(|| UNKNOWN.to_owned())
    }),
    ("SESSION", |session| session.session_id.clone()),
    ("CLUSTER-UID", |session| session.cluster_uid.clone()),
    ("AGENT", |session| session.agent_instance.clone()),
];
const UNKNOWN: &str = "<unknown>";

pub(super) fn print(
    args: &GetArgs,
    list: &v1::ListSessionsResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let output = args.print.output;
    if !output.is_for_people() {
        let json = proto_json::value("ListSessionsResponse", list)?;
        return output.write(io.stdout, &json, &[]);
    }
    let shown = if output.is_wide() {
        COLUMNS.len()
    } else {
        NARROW
    };
    let columns = &COLUMNS[..shown];
    let table = Table::new(Page::new(io), columns.iter().map(|it| it.0));
    let mut table = table.no_headers(args.print.no_headers);
    for session in &list.sessions {
        table.row(columns.iter().map(|(_, cell)| cell(session)));
    }
    Ok(table.write(io.stdout, 0)?)
}

/// The age of the view, in seconds.
fn view_age(session: &v1::SessionSummary) -> Option<String> {
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
const fn mode(mode: v1::Mode) -> &'static str {
    match mode {
        v1::Mode::Unspecified | v1::Mode::Enforce => "Enforce",
        v1::Mode::Shadow => "Shadow",
        v1::Mode::DryRun => "DryRun",
    }
}
