//! `decree decide`: the server's core on a snapshot from files.

use std::{collections::BTreeMap, iter};

use decree::v1;
use decree_server::wire::encode;
use jiff::Timestamp;
use server_core::{Config, SurroundingsCopy, controller_of};

use crate::{
    age,
    args::{DecideArgs, Named},
    decision,
    exit::{Exit, Failure},
    input::KUBECTL,
    near, not_found,
    snapshot::Snapshot,
    streams::Io,
    table::one_line,
};

pub(crate) fn run(args: &DecideArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let snapshot = Snapshot::read(&args.input, io)?;
    let chosen = chosen(&snapshot, args)?;
    let mut sets = snapshot.replica_sets.iter();
    if snapshot.pods.is_empty() && sets.any(|set| set.status.replicas > 0) {
        let notice = "the input has no pods, but its ReplicaSets have, by their status";
        writeln!(io.stderr, "notice: {notice}; {KUBECTL}")?;
    }
    if args.replicas.is_some() && chosen.len() != 1 {
        let count = chosen.len();
        let cause = format!("--replicas is for one ReplicaSet, and there are {count}");
        return Err(Failure::new(Exit::Usage, cause).hint("select one with --replica-set"));
    }
    let now = args.now.unwrap_or_else(|| age::core_time(Timestamp::now()));
    let Snapshot {
        replica_sets, pods, ..
    } = snapshot;
    let controller = controller_of(now, Config::default(), replica_sets, pods);
    let decisions = chosen.iter().filter_map(|named| {
        let mut copy = SurroundingsCopy::new(&named.namespace, &named.name, usize::MAX);
        let around = iter::repeat_with(|| copy.step(now, &controller)).find_map(|it| it);
        let decided = around?.decide(args.replicas, &|| true).ok().flatten();
        decided.map(encode::decision)
    });
    let decisions: Vec<_> = decisions.collect();
    for (pod, sets) in contested(&decisions) {
        let sets = sets.join(" and ");
        let notice = format!(
            "{pod} matches {sets}: each is decided alone, and the first to adopt it has it"
        );
        writeln!(io.stderr, "notice: {}", one_line(&notice))?;
    }
    decision::write(&args.print, io, decisions)?;
    Ok(Exit::Done)
}

/// The orphans that more than one ReplicaSet would adopt, each with these ReplicaSets.
fn contested(decisions: &[v1::Decision]) -> BTreeMap<String, Vec<String>> {
    let mut adopters = BTreeMap::<_, Vec<_>>::new();
    for decision in decisions {
        let set = decision::path(decision.replica_set.as_ref());
        for pod in &decision.adopts {
            let pod = decision::path(Some(pod));
            adopters.entry(pod).or_default().push(set.clone());
        }
    }
    adopters.retain(|_, sets| sets.len() > 1);
    adopters
}

/// The ReplicaSets to decide for, by namespace and name.
fn chosen(snapshot: &Snapshot, args: &DecideArgs) -> Result<Vec<Named>, Failure> {
    let mut names: Vec<_> = snapshot.replica_sets.iter().map(|set| &set.key).collect();
    names.sort();
    let all = names.into_iter();
    let all: Vec<_> = all
        .map(|key| Named::new(&key.namespace, &key.name))
        .collect();
    let Some(wanted) = &args.replica_set else {
        if all.is_empty() {
            return Err(
                Failure::new(Exit::Usage, "there is no ReplicaSet in the input")
                    .hint("include both kinds: kubectl get rs,pods -o json"),
            );
        }
        let namespace = args.namespace.filter();
        let is_in_it = |named: &Named| namespace.is_empty() || named.namespace == namespace;
        let (chosen, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_in_it);
        if chosen.is_empty() {
            let cause = format!("no ReplicaSet of namespace {namespace} in the input");
            return Err(Failure::new(Exit::No, cause).hint(known(&others)));
        }
        return Ok(chosen);
    };
    let wanted = args.namespace.resolve_one(wanted)?;
    if !all.contains(&wanted) {
        let cause = format!("ReplicaSet {} not found in the input", wanted.path());
        let hint = not_found::hint(&wanted, &all).unwrap_or_else(|| known(&all));
        return Err(Failure::new(Exit::No, cause).hint(hint));
    }
    Ok(vec![wanted])
}

fn known(all: &[Named]) -> String {
    const SHOWN_MAX: usize = 5;
    if all.is_empty() {
        return "the input contains no ReplicaSet".to_owned();
    }
    let paths: Vec<_> = all.iter().map(Named::path).collect();
    format!("the input contains {}", near::first_of(&paths, SHOWN_MAX))
}
