//! `decree get`: lists of what a running server holds, or of the ReplicaSets of a snapshot.

use decree::v1;

use crate::{
    args::{GetArgs, NameArg, Named, NamespaceArgs, Scope, Wanted},
    cause::{self, Groups},
    decision,
    exit::{Exit, Failure},
    page::Page,
    proto_json,
    server::{self, Server},
    source::{RECORDS, Source},
    stale,
    streams::Io,
    table::{Table, one_line},
};

mod follow;
mod replica_sets;
mod sessions;

pub(crate) use sessions::cluster;

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
    let source = Source::open(&args.source, &mut namespaces, wanted, io).await?;
    let (named, unknown) = source.replica_sets(names, &namespaces).await?;
    let scope = Scope::of(named, namespaces.filter());
    let list = follow::list(&source, args, &scope).await?;
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
        return follow::run(&source, args, &scope, list, io).await;
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
    let sets = &list.replica_sets;
    if !args.print.output.is_for_people() {
        let names: Vec<_> = sets.iter().map(replica_sets::name).collect();
        let json = proto_json::value("ListReplicaSetsResponse", list)?;
        return args.print.output.write(io.stdout, &json, &names);
    }
    let (is_wide, no_headers) = (args.print.output.is_wide(), args.print.no_headers);
    let (page, columns) = (Page::new(io), replica_sets::columns(sets, is_wide));
    let table = Table::new(page, columns.iter().map(|it| it.0));
    let mut table = table.no_headers(no_headers);
    let mut rows: Vec<_> = sets.iter().collect();
    rows.sort_by_key(|set| cause::rank(set));
    let shown = if no_headers { &[] } else { &**sets };
    let groups = Groups::of(shown);
    for set in rows {
        let cells = replica_sets::cells(&columns, set);
        if groups.has(set) && !is_wide {
            table.told_row(cells);
        } else {
            table.row(cells);
        }
    }
    if !table.is_empty() {
        let watched = cause::watched(shown).into_iter();
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

/// The named ReplicaSets that do not exist.
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
    sessions::print(args, &list, io)?;
    stale::notice(&list.stale_views, io)
}
