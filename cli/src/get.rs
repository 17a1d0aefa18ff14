//! `decree get`: lists of what a running server holds, or of the ReplicaSets of a snapshot.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use decree_api::{json::Json, v1};
use jiff::Timestamp;
use tokio::time::sleep;

use crate::{
    age,
    args::{GetArgs, NameArg, Named, NamespaceArgs, Scope, Wanted},
    cause::{self, Groups},
    decision,
    exit::{Exit, Failure},
    format,
    page::{Io, Page, one_line},
    server::{self, Server},
    source::{KINDS, RECORDS, Source},
    stale,
    table::{NONE, Table, TableStream},
};

pub(crate) fn run(args: &GetArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match args.wanted()? {
        Wanted::ReplicaSets(names) => server::block_on(get_replica_sets(args, &names, io)),
        Wanted::Sessions => server::block_on(get_sessions(args, io)),
    }
}

async fn get_replica_sets(
    args: &GetArgs,
    names: &[NameArg],
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let mut namespaces = args.namespace.clone();
    let wanted = |it: &NamespaceArgs| it.wanted(names);
    let source = Source::open(&args.source, &mut namespaces, wanted, &KINDS, io).await?;
    let (named, unknown) = source.replica_sets(names, &namespaces).await?;
    let scope = Scope::of(named, namespaces.filter());
    let list = source.list(&scope).await?;
    if let (true, Source::Server { server, cluster }) = (list.replica_sets.is_empty(), &source) {
        server.check_connected(cluster).await?;
    }
    let missing = missing(&scope, &list.replica_sets);
    if args.watch && missing.is_empty() && unknown.is_empty() {
        if source.is_snapshot() {
            let failure = Failure::new(Exit::Usage, "-w takes a server, and a snapshot is read");
            return Err(failure.hint(RECORDS));
        }
        if list.replica_sets.is_empty() {
            writeln!(io.stderr, "{}", nothing_in(&scope.namespace))?;
        }
        return follow(&source, args, &scope, list, io).await;
    }
    let exit = stale::notice(&list.stale_views, io)?;
    print(args, &scope, &list, io)?;
    // A ReplicaSet of a session that did not answer is not known to be missing.
    if exit == Exit::Done {
        source.check_found(&missing, unknown).await
    } else {
        Ok(exit)
    }
}

fn print(
    args: &GetArgs,
    scope: &Scope,
    list: &v1::ListReplicaSetsResponse,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let (sets, output) = (&list.replica_sets, args.print.output);
    if !output.is_for_people() {
        let names = sets
            .iter()
            .map(|it| decision::name(it.replica_set.as_ref()));
        let names: Vec<_> = names.collect();
        let json = format::proto_json("ListReplicaSetsResponse", list)?;
        return output.write(io.stdout, &json, &names);
    }
    let (page, columns) = (Page::new(io), columns(sets, output.is_wide()));
    let mut table = Table::new(page, columns.iter().map(|it| it.0));
    let mut rows: Vec<_> = sets.iter().collect();
    rows.sort_by_key(|set| cause::rank(set));
    let groups = Groups::of(sets);
    for set in rows {
        let cells = cells(&columns, set);
        if groups.has(set) && !output.is_wide() {
            table.told_row(cells);
        } else {
            table.row(cells);
        }
    }
    if !table.is_empty() {
        let watched = cause::watched(sets).into_iter();
        for line in watched.chain(groups.lines()) {
            page.write(io.stdout, 0, &one_line(&line))?;
        }
        table.write(io.stdout, 0)?;
    } else if scope.only.is_empty() && list.stale_views.iter().all(|view| !view.missing) {
        writeln!(io.stderr, "{}", nothing_in(&scope.namespace))?;
    }
    Ok(())
}

/// The message of kubectl for an empty list.
pub(crate) fn nothing_in(namespace: &str) -> String {
    match namespace {
        "" => "No resources found.".to_owned(),
        namespace => format!("No resources found in {namespace} namespace."),
    }
}

fn missing(scope: &Scope, sets: &[v1::ReplicaSetSummary]) -> Vec<Named> {
    let sets = sets.iter().map(|set| set.replica_set.as_ref());
    let paths: Vec<_> = sets.map(decision::path).collect();
    let named = scope.only.iter();
    let missing = named.filter(|named| !paths.contains(&named.path()));
    missing.cloned().collect()
}

async fn get_sessions(args: &GetArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let server = Server::connect(&args.source.inspection.server).await?;
    let wanted = &args.source.inspection.cluster;
    let list = server.sessions(wanted).await?;
    if list.sessions.is_empty() {
        return Err(server.nothing_connected(wanted));
    }
    let output = args.print.output;
    if output.is_for_people() {
        let shown = if output.is_wide() {
            SESSIONS.len()
        } else {
            NARROW
        };
        let columns = &SESSIONS[..shown];
        let mut table = Table::new(Page::new(io), columns.iter().map(|it| it.0));
        let rows = list.sessions.iter().map(|it| cells(columns, it));
        rows.for_each(|cells| table.row(cells));
        table.write(io.stdout, 0)?;
    } else {
        let json = format::proto_json("ListSessionsResponse", &list)?;
        output.write(io.stdout, &json, &[])?;
    }
    stale::notice(&list.stale_views, io)
}

/// The header of a column, and its cell for an object.
type Column<T> = (&'static str, fn(&T) -> String);

/// The sentences are in the last columns, because nothing cuts them off there.
const REPLICA_SETS: [Column<v1::ReplicaSetSummary>; 14] = [
    ("CLUSTER", |set| set.cluster.clone()),
    ("NAMESPACE", |set| {
        let object = set.replica_set.as_ref();
        object.map_or_else(String::new, |object| object.namespace.clone())
    }),
    ("NAME", |set| {
        decision::name(set.replica_set.as_ref()).to_owned()
    }),
    ("DESIRED", |set| set.replicas.to_string()),
    ("CURRENT", |set| set.active.to_string()),
    ("READY", |set| set.ready.to_string()),
    ("AVAILABLE", |set| set.available.to_string()),
    ("STATE", |set| cause::state(set).to_owned()),
    ("TERMINATING", |set| set.terminating.to_string()),
    ("UNCONVERGED", |set| {
        let age = age::since(set.diverge_time.as_ref(), Timestamp::now());
        age.map_or_else(|| "-".to_owned(), age::human)
    }),
    ("LABELS", labels),
    ("CAUSE", |set| cause::cell(set, Timestamp::now())),
    ("NOT-READY", |set| {
        cause::not_ready(set, false).unwrap_or_else(|| NONE.to_owned())
    }),
    ("MESSAGE", |set| cause::words(set).to_owned()),
];

fn columns(sets: &[v1::ReplicaSetSummary], is_wide: bool) -> Vec<Column<v1::ReplicaSetSummary>> {
    let clusters: BTreeSet<_> = sets.iter().map(|set| &set.cluster).collect();
    let columns = REPLICA_SETS
        .into_iter()
        .filter(|(header, _)| match *header {
            "CLUSTER" => is_wide || clusters.len() > 1,
            "TERMINATING" | "UNCONVERGED" | "LABELS" | "NOT-READY" | "MESSAGE" => is_wide,
            _ => true,
        });
    columns.collect()
}

fn cells<T>(columns: &[Column<T>], object: &T) -> Vec<String> {
    columns.iter().map(|(_, cell)| cell(object)).collect()
}

fn labels(set: &v1::ReplicaSetSummary) -> String {
    let labels = set.template_labels.iter();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let mut labels: Vec<_> = labels.collect();
    labels.sort();
    if labels.is_empty() {
        "<none>".to_owned()
    } else {
        labels.join(",")
    }
}

/// The number of columns without `-o wide`, which fit a terminal of 80 columns.
const NARROW: usize = 7;
const SESSIONS: [Column<v1::SessionSummary>; 13] = [
    ("CLUSTER", |session| cluster(session).to_owned()),
    ("SHARD", |session| match session.shard.as_str() {
        "" => "<all>".to_owned(),
        shard => shard.to_owned(),
    }),
    ("MODE", |session| {
        let mode = match session.mode() {
            v1::Mode::Unspecified | v1::Mode::Enforce => "Enforce",
            v1::Mode::Shadow => "Shadow",
            v1::Mode::DryRun => "DryRun",
            v1::Mode::Advise => "Advise",
        };
        mode.to_owned()
    }),
    ("SYNCED", |session| {
        if session.synced { "True" } else { "False" }.to_owned()
    }),
    ("REPLICASETS", |session| session.replica_sets.to_string()),
    ("PODS", |session| session.pods.to_string()),
    ("AGE", |session| {
        let age = age::since(session.start_time.as_ref(), Timestamp::now());
        age.map_or_else(|| UNKNOWN.to_owned(), age::human)
    }),
    ("IN-FLIGHT", |session| session.batches_in_flight.to_string()),
    ("EPOCH", |session| session.epoch.to_string()),
    ("VIEW-AGE", |session| {
        let age = session
            .view_age
            .map(|it| Duration::try_from(it).unwrap_or_default());
        age.map_or_else(
            || UNKNOWN.to_owned(),
            |it| format!("{:.1}s", it.as_secs_f64()),
        )
    }),
    ("SESSION", |session| session.session_id.clone()),
    ("CLUSTER-UID", |session| session.cluster_uid.clone()),
    ("AGENT", |session| session.agent_instance.clone()),
];
const UNKNOWN: &str = "<unknown>";

/// The name of the cluster, or else its uid.
pub(crate) fn cluster(session: &v1::SessionSummary) -> &str {
    match session.cluster_name.as_str() {
        "" => &session.cluster_uid,
        name => name,
    }
}

const PERIOD: Duration = Duration::from_secs(1);

/// The last printed state of each ReplicaSet, by cluster and uid.
type Known = BTreeMap<(String, String), v1::ReplicaSetSummary>;

/// Prints ReplicaSets again when they change, as `decree get -w` does. The server streams decisions, not states, and a state also changes
/// without a decision, such as at the end of a batch. So this requests the list once a second, and prints the changes.
async fn follow(
    source: &Source,
    args: &GetArgs,
    scope: &Scope,
    first: v1::ListReplicaSetsResponse,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    for line in cause::watched(&first.replica_sets) {
        io.notice(&line)?;
    }
    let output = args.print.output;
    let columns = columns(&first.replica_sets, output.is_wide());
    let cells = |set: &v1::ReplicaSetSummary| cells(&columns, set);
    let headers = columns.iter().map(|it| it.0);
    let mut stream = TableStream::new(Page::new(io), headers);
    if output.is_for_people() {
        let rows = first.replica_sets.iter().map(cells);
        rows.for_each(|cells| stream.widen(&cells));
        stream.write_headers(io.stdout)?;
    }
    let json = Json::default();
    let (mut known, mut list) = (Known::new(), first);
    let mut noticed = Vec::<v1::StaleView>::new();
    loop {
        // A view is named when it becomes stale, and when its session ceases to answer.
        let is_known = |view: &v1::StaleView| {
            let mut same = noticed.iter().filter(|it| stale::is_same(it, view));
            same.any(|it| it.missing == view.missing)
        };
        let new = list.stale_views.iter().filter(|view| !is_known(view));
        stale::notice(new, io)?;
        let is_whole = list.stale_views.iter().all(|view| !view.missing);
        noticed = list.stale_views;
        let (changed, gone) = changed(&mut known, list.replica_sets, is_whole);
        for set in gone {
            let path = decision::path(set.replica_set.as_ref());
            io.notice(&format!("{path} is gone"))?;
        }
        for set in changed {
            if output.is_for_people() {
                stream.write(io.stdout, cells(&set))?;
            } else {
                let json = json.value("ReplicaSetSummary", &set)?;
                let name = decision::name(set.replica_set.as_ref());
                output.write(io.stdout, &json, &[name])?;
            }
        }
        io.stdout.flush()?;
        sleep(PERIOD).await;
        list = source.list(scope).await?;
    }
}

/// The ReplicaSets that differ from the last printed state, and those that have disappeared. One that comes back is printed again. From a
/// list that is not whole, none has disappeared.
fn changed(
    known: &mut Known,
    sets: Vec<v1::ReplicaSetSummary>,
    is_whole: bool,
) -> (Vec<v1::ReplicaSetSummary>, Vec<v1::ReplicaSetSummary>) {
    let key = |set: &v1::ReplicaSetSummary| {
        let uid = set.replica_set.as_ref().map(|object| object.uid.clone());
        (set.cluster.clone(), uid.unwrap_or_default())
    };
    let mut before = std::mem::take(known);
    known.extend(sets.iter().map(|set| (key(set), set.clone())));
    let mut changed = sets;
    changed.retain(|set| before.remove(&key(set)).as_ref() != Some(set));
    if !is_whole {
        known.append(&mut before);
    }
    (changed, before.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(uid: &str, ready: i32) -> v1::ReplicaSetSummary {
        let object = v1::ObjectRef {
            uid: uid.to_owned(),
            ..v1::ObjectRef::default()
        };
        v1::ReplicaSetSummary {
            replica_set: Some(object),
            ready,
            ..v1::ReplicaSetSummary::default()
        }
    }

    #[test]
    fn changes_and_disappearances_are_told_once() {
        let mut known = Known::new();
        let (a, b) = (set("a", 1), set("b", 1));
        for (sets, is_whole, new, gone) in [
            (
                vec![a.clone(), b.clone()],
                true,
                vec![a.clone(), b.clone()],
                vec![],
            ),
            (
                vec![a.clone(), set("b", 2)],
                true,
                vec![set("b", 2)],
                vec![],
            ),
            // The session of one does not answer for a while.
            (vec![a.clone()], false, vec![], vec![]),
            (vec![a.clone(), set("b", 2)], true, vec![], vec![]),
            (vec![a.clone()], false, vec![], vec![]),
            (vec![a.clone()], true, vec![], vec![set("b", 2)]),
            (vec![a.clone()], true, vec![], vec![]),
            (vec![a, b.clone()], true, vec![b], vec![]),
        ] {
            assert_eq!(changed(&mut known, sets, is_whole), (new, gone));
        }
    }
}
