//! `decree simulate`: the decisions for a different number of replicas, or after a change of the cluster.

use decree_api::v1::{self, simulate_cluster_request::Change};
use decree_core::wording::count;

use crate::{
    args::{Named, NamespaceArgs, SimulateArgs},
    decision,
    exit::{Exit, Failure},
    format, near,
    page::{Io, Page, one_line},
    server,
    source::{KINDS, Meaning, Source},
    stale,
    table::Table,
    unread,
};

/// The maximum number of names in a cell; `-o wide` has all.
const NAMES_MAX: usize = 3;
/// The columns of both tables.
const SHARED: [&str; 3] = ["REPLICASET", "DESIRED", "CURRENT"];

pub(crate) fn run(args: &SimulateArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if let Some(change) = change(args) {
        return run_change(args, change, io);
    }
    if args.names.is_empty() {
        let failure = Failure::new(Exit::Usage, "nothing is assumed");
        return Err(failure.hint("name ReplicaSets, or use --drain NODE or --quota PODS"));
    }
    server::block_on(async {
        let mut namespaces = args.namespace.clone();
        let wanted = |it: &NamespaceArgs| it.wanted(&args.names);
        let source = Source::open(&args.source, &mut namespaces, wanted, &KINDS, io).await?;
        let (meanings, unknown) = source.meanings(&args.names, &namespaces).await?;
        let mut assumed = Vec::new();
        for meaning in meanings {
            for (named, replicas) in sizes(&source, meaning, args.replicas, io).await? {
                if !assumed.iter().any(|(known, _)| *known == named) {
                    assumed.push((named, replicas));
                }
            }
        }
        let answers = source.decisions(&assumed).await?;
        let (mut decisions, mut missing) = (Vec::new(), Vec::new());
        for (answer, (named, _)) in answers.into_iter().zip(assumed) {
            match answer {
                Some(answer) => {
                    stale::notice(&answer.stale_view, io)?;
                    decisions.extend(answer.decision);
                }
                None => missing.push(named),
            }
        }
        if !decisions.is_empty() {
            unread::notice(&source, &decisions, io)?;
            decision::write(args.print.output, io, decisions)?;
        }
        source.check_found(&missing, unknown).await
    })
}

/// The replicas to assume for each ReplicaSet. Among those of a Deployment, the Deployment controller divides its replicas.
async fn sizes(
    source: &Source,
    meaning: Meaning,
    replicas: Option<i32>,
    io: &mut Io<'_>,
) -> Result<Vec<(Named, Option<i32>)>, Failure> {
    let Meaning { sets, owner } = meaning;
    let (Some(wanted), Some((kind, owner)), [_, _, ..]) = (replicas, owner, &sets[..]) else {
        return Ok(sets.into_iter().map(|named| (named, replicas)).collect());
    };
    let path = owner.path();
    let found = match kind {
        "Deployment" => source.deployment(&owner, &sets).await?,
        _ => None,
    };
    let Some((deployment, members)) = found else {
        let names: Vec<_> = sets.iter().map(|set| set.name.as_str()).collect();
        let names = names.join(", ");
        let cause = format!("{kind} {path} divides its replicas among {names}");
        let hint =
            "name one of them, or read its cluster with --context, or files with the Deployment";
        return Err(Failure::new(Exit::Usage, cause).hint(hint));
    };
    let divided = deployment.divide(&members, wanted.into());
    let parts = members.iter().zip(&divided);
    let parts = parts.map(|(it, to)| format!("{} {} → {to}", it.name, it.replicas));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let divides = format!("Kubernetes divides {wanted} replicas of {path}: {parts}");
    io.notice(&divides)?;
    if !deployment.is_observed {
        io.notice("its controller has not seen the last change of the Deployment")?;
    }
    let named = |name: &str| Named::new(&owner.namespace, name);
    let sizes = members.iter().zip(divided);
    let sizes =
        sizes.map(|(it, to)| (named(&it.name), Some(i32::try_from(to).unwrap_or(i32::MAX))));
    Ok(sizes.collect())
}

fn change(args: &SimulateArgs) -> Option<Change> {
    let drain = args.drain.clone().map(|node| v1::NodeDrain { node });
    let quota = args.quota.map(|pods| v1::PodQuota {
        namespace: String::new(),
        pods,
    });
    drain
        .map(Change::NodeDrain)
        .or_else(|| quota.map(Change::PodQuota))
}

/// Prints the effect of a change, on the cluster of a server or of files.
fn run_change(args: &SimulateArgs, mut change: Change, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let only = args.namespace.filter();
    let mut answer = server::block_on(async {
        let mut namespaces = args.namespace.clone();
        let is_drain = matches!(change, Change::NodeDrain(_));
        let wanted = |it: &NamespaceArgs| {
            let all = is_drain && it.namespace.is_none();
            Ok([(!all).then(|| it.or_default())].into())
        };
        let source = Source::open(&args.source, &mut namespaces, wanted, &KINDS, io).await?;
        if let Change::PodQuota(quota) = &mut change {
            quota.namespace = namespaces.or_default();
        }
        source.effect(&change).await
    })?;
    let change = &change;
    answer.replica_sets.retain(|set| {
        let namespace = set.replica_set.as_ref().map(|it| &it.namespace);
        only.is_empty() || namespace == Some(&only)
    });
    let exit = stale::notice(&answer.stale_views, io)?;
    let output = args.print.output;
    if !output.is_for_people() {
        let json = format::proto_json("SimulateClusterResponse", &answer)?;
        let sets = answer.replica_sets.iter();
        let names = sets.map(|it| decision::name(it.replica_set.as_ref()));
        let names: Vec<_> = names.collect();
        output.write(io.stdout, &json, &names)?;
        return Ok(exit);
    }
    let page = Page::new(io);
    for line in lines(change, &answer, &only, output.is_wide()) {
        page.write(io.stdout, 0, &one_line(&line))?;
    }
    let table = table(change, &answer, output.is_wide(), page);
    if !table.is_empty() {
        writeln!(io.stdout)?;
        table.write(io.stdout, 0)?;
    }
    Ok(exit)
}

fn lines(
    change: &Change,
    answer: &v1::SimulateClusterResponse,
    only: &str,
    is_wide: bool,
) -> Vec<String> {
    let sets = &answer.replica_sets;
    match change {
        Change::NodeDrain(v1::NodeDrain { node }) if sets.is_empty() => {
            let of = if only.is_empty() { "" } else { " of " };
            vec![format!(
                "A drain of {node} affects no ReplicaSet{of}{only}: no active pod of one is known there."
            )]
        }
        Change::NodeDrain(v1::NodeDrain { node }) => {
            let sum = |number: fn(&v1::ReplicaSetEffect) -> i32| {
                sets.iter().map(|set| i64::from(number(set))).sum::<i64>()
            };
            let (deleted, creates) = (sum(|set| set.deleted), sum(|set| set.creates));
            let of = count(sets.len(), "ReplicaSet");
            let drain = format!(
                "A drain of {node} deletes {} of {of}, which then lack {}.",
                count(deleted, "pod"),
                count(creates, "pod"),
            );
            let budgets = "Disruption budgets, which can delay a drain, are not known here.";
            let bare = |in_advance_min: i32| {
                let is_bare = |it: &&v1::ReplicaSetEffect| {
                    it.replicas > 0 && it.ready_left == Some(0) && it.in_advance >= in_advance_min
                };
                let bare = sets.iter().filter(is_bare);
                let paths: Vec<_> = bare
                    .map(|set| decision::path(set.replica_set.as_ref()))
                    .collect();
                let shown = if is_wide { paths.len() } else { NAMES_MAX };
                (!paths.is_empty()).then(|| (paths.len(), near::first_of(&paths, shown)))
            };
            let left = bare(0).map(|(number, names)| {
                let verb = if number == 1 { "is" } else { "are" };
                format!("{number} of {of} {verb} left with no ready pod: {names}.")
            });
            let replaced = bare(1).map(|(_, names)| {
                format!("With a disruption budget, these get replacements first: {names}.")
            });
            let lines = left.into_iter().chain(replaced);
            lines.chain([drain, budgets.to_owned()]).collect()
        }
        Change::PodQuota(quota) => quota_lines(quota, answer.quota.unwrap_or_default()),
    }
}

fn quota_lines(quota: &v1::PodQuota, effect: v1::QuotaEffect) -> Vec<String> {
    let v1::PodQuota { namespace, pods } = quota;
    let (used, refused) = (effect.pods, effect.refused);
    let limit = count(*pods, "pod");
    let creates = count(effect.creates, "create");
    let counting = count(used, "pod");
    let mut lines = vec![format!(
        "A quota of {limit} in {namespace} refuses {refused} of {creates}; it counts {counting} now."
    )];
    let over = used.saturating_sub(i64::from(*pods));
    if over >= 0 {
        let more = count(over.saturating_add(1), "pod");
        lines.push(format!(
            "It deletes no pods, but replaces none before the loss of {more}."
        ));
    }
    if refused > 0 {
        lines.push(
            "The order of creates is not defined: REFUSED is the least and the most of a ReplicaSet."
                .to_owned(),
        );
    }
    lines
}

fn table(
    change: &Change,
    answer: &v1::SimulateClusterResponse,
    is_wide: bool,
    page: Page,
) -> Table {
    let headers = match change {
        Change::NodeDrain(_) => &["DELETED", "LACKING", "READY-LEFT", "PODS"][..],
        Change::PodQuota(_) => &["CREATES", "REFUSED"],
    };
    let mut table = Table::new(page, SHARED.iter().chain(headers).copied());
    for set in &answer.replica_sets {
        let mut cells = vec![
            decision::path(set.replica_set.as_ref()),
            set.replicas.to_string(),
            set.active.to_string(),
        ];
        let creates = set.creates.to_string();
        match change {
            Change::NodeDrain(_) => {
                let left = set
                    .ready_left
                    .map_or_else(|| "-".to_owned(), |it| it.to_string());
                cells.extend([set.deleted.to_string(), creates, left, names(set, is_wide)]);
            }
            Change::PodQuota(_) => cells.extend([creates, refused(set)]),
        }
        table.row(cells);
    }
    table
}

/// The least and the most creates that a quota refuses.
fn refused(set: &v1::ReplicaSetEffect) -> String {
    match (set.refused_min, set.refused_max) {
        (least, most) if least == most => most.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// The deleted pods; the first ones if there are many.
fn names(set: &v1::ReplicaSetEffect, is_wide: bool) -> String {
    let count = set.deleted_pods.len();
    let shown = if is_wide { count } else { count.min(NAMES_MAX) };
    let names = set.deleted_pods[..shown].join(", ");
    let shown = i32::try_from(shown).unwrap_or(i32::MAX);
    match set.deleted.saturating_sub(shown) {
        ..=0 => names,
        more => format!("{names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_hostile_server_end_nothing() {
        let quota = v1::PodQuota::default();
        for (pods, lines) in [(i64::MAX, 2), (i64::MIN, 1)] {
            let effect = v1::QuotaEffect {
                pods,
                ..v1::QuotaEffect::default()
            };
            assert_eq!(quota_lines(&quota, effect).len(), lines);
        }
    }
}
