//! `decree get -w`: ReplicaSets again when they change.
//!
//! The server streams decisions, not states, and a state also changes without a decision, such as at the end of a batch. So the
//! command requests the list once a second, and prints the changes.

use std::{collections::BTreeMap, time::Duration};

use decree::{json::Json, v1};
use tokio::time::sleep;

use super::{cells as cells_of, columns, name};
use crate::{
    args::{GetArgs, Scope},
    cause, decision,
    exit::{Exit, Failure},
    page::{Io, Page},
    source::Source,
    stale,
    table::{TableStream, one_line},
};

const PERIOD: Duration = Duration::from_secs(1);

/// The last printed state of each ReplicaSet, by cluster and uid.
type Known = BTreeMap<(String, String), v1::ReplicaSetSummary>;

pub(super) async fn run(
    source: &Source,
    args: &GetArgs,
    scope: &Scope,
    first: v1::ListReplicaSetsResponse,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    for line in cause::watched(&first.replica_sets) {
        writeln!(io.stderr, "notice: {}", one_line(&line))?;
    }
    let columns = columns(&first.replica_sets, args.print.output.is_wide());
    let cells = |set: &v1::ReplicaSetSummary| cells_of(&columns, set);
    let headers = columns.iter().map(|it| it.0);
    let mut stream = TableStream::new(Page::new(io), headers);
    if args.print.output.is_for_people() && !args.print.no_headers {
        let rows = first.replica_sets.iter().map(cells);
        rows.for_each(|cells| stream.widen(&cells));
        stream.write_headers(io.stdout)?;
    }
    let json = Json::default();
    let (mut known, mut list) = (Known::new(), first);
    let mut noticed = Vec::<v1::StaleView>::new();
    loop {
        // A view is named when it becomes stale.
        let is_known = |view: &v1::StaleView| noticed.iter().any(|it| stale::is_same(it, view));
        let new = list.stale_views.iter().filter(|view| !is_known(view));
        let is_whole = stale::notice(new, io)? == Exit::Done;
        noticed = list.stale_views;
        let (changed, gone) = changed(&mut known, list.replica_sets);
        for set in gone.iter().filter(|_| is_whole) {
            let path = decision::path(set.replica_set.as_ref());
            writeln!(io.stderr, "notice: {} is gone", one_line(&path))?;
        }
        for set in changed {
            if args.print.output.is_for_people() {
                stream.write(io.stdout, cells(&set))?;
            } else {
                let json = json.value("ReplicaSetSummary", &set)?;
                args.print.output.write(io.stdout, &json, &[name(&set)])?;
            }
        }
        io.stdout.flush()?;
        sleep(PERIOD).await;
        list = self::list(source, args, scope).await?;
    }
}

/// Requests the ReplicaSets of a scope with the labels of the flags.
pub(super) async fn list(
    source: &Source,
    args: &GetArgs,
    scope: &Scope,
) -> Result<v1::ListReplicaSetsResponse, Failure> {
    let mut list = source.list(scope).await?;
    if let Some(filter) = &args.selector {
        list.replica_sets
            .retain(|set| filter.matches(&set.template_labels));
    }
    Ok(list)
}

/// The ReplicaSets that differ from the last printed state, and those that have disappeared. One that comes back is printed again.
fn changed(
    known: &mut Known,
    sets: Vec<v1::ReplicaSetSummary>,
) -> (Vec<v1::ReplicaSetSummary>, Vec<v1::ReplicaSetSummary>) {
    let key = |set: &v1::ReplicaSetSummary| {
        let uid = set.replica_set.as_ref().map(|object| object.uid.clone());
        (set.cluster.clone(), uid.unwrap_or_default())
    };
    let mut before = std::mem::take(known);
    known.extend(sets.iter().map(|set| (key(set), set.clone())));
    let mut changed = sets;
    changed.retain(|set| before.remove(&key(set)).as_ref() != Some(set));
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
        for (sets, new, gone) in [
            (
                vec![a.clone(), b.clone()],
                vec![a.clone(), b.clone()],
                vec![],
            ),
            (vec![a.clone(), set("b", 2)], vec![set("b", 2)], vec![]),
            (vec![a.clone()], vec![], vec![set("b", 2)]),
            (vec![a.clone()], vec![], vec![]),
            (vec![a, b.clone()], vec![b], vec![]),
        ] {
            assert_eq!(changed(&mut known, sets), (new, gone));
        }
    }
}
