//! `decree decide`: the server's core on a snapshot from files or from a cluster.

use std::{collections::BTreeMap, time::Duration};

use decree_api::v1;
use jiff::Timestamp;

use crate::{
    age,
    args::{DecideArgs, Named, NamespaceArgs},
    decision,
    exit::{Exit, Failure},
    page::Io,
    server,
    source::{self, KINDS, Source},
    unread,
};

/// How long a page of a cluster may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &DecideArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    server::block_on(async {
        let mut namespaces = args.namespace.clone();
        let written: Vec<_> = args.replica_set.iter().cloned().collect();
        let wanted = |it: &NamespaceArgs| it.wanted(&written);
        let inputs = (&args.input, &args.kube);
        let read = source::read(inputs, &mut namespaces, wanted, &KINDS, PATIENCE, io);
        let (mut snapshot, cluster) = read.await?;
        snapshot.costs = args.costs.clone().unwrap_or_default();
        let now = args.now.unwrap_or_else(|| age::core_time(Timestamp::now()));
        let source = Source::of(snapshot, now, cluster);
        let chosen = if written.is_empty() {
            of_namespace(&source, &namespaces.filter()).await?
        } else {
            let (sets, unknown) = source.replica_sets(&written, &namespaces).await?;
            let missing = source.missing_among(&sets).await?;
            source.check_found(&missing, unknown).await?;
            sets
        };
        if args.replicas.is_some() && chosen.len() != 1 {
            let count = chosen.len();
            let cause = format!("--replicas is for one ReplicaSet, and there are {count}");
            return Err(Failure::new(Exit::Usage, cause).hint("select one with --replica-set"));
        }
        let assumed: Vec<_> = chosen.into_iter().map(|it| (it, args.replicas)).collect();
        let answers = source.decisions(&assumed).await?.into_iter().flatten();
        let decisions: Vec<_> = answers.filter_map(|answer| answer.decision).collect();
        for (pod, sets) in contested(&decisions) {
            let sets = sets.join(" and ");
            io.notice(&format!(
                "{pod} matches {sets}: each is decided alone, and the first to adopt it has it"
            ))?;
        }
        unread::notice(&source, &decisions, io)?;
        decision::write(args.print.output, io, decisions)?;
        Ok(Exit::Done)
    })
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

/// The ReplicaSets of a namespace, or of all for the empty text.
async fn of_namespace(source: &Source, namespace: &str) -> Result<Vec<Named>, Failure> {
    let all = source.known("").await?;
    let mut all: Vec<_> = all.iter().filter_map(source::named).collect();
    if all.is_empty() {
        let failure = Failure::new(Exit::Usage, "there is no ReplicaSet in the input");
        return Err(failure.hint("include both kinds: kubectl get rs,pods -o json"));
    }
    all.sort();
    let is_in_it = |named: &Named| namespace.is_empty() || named.namespace == namespace;
    let (chosen, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_in_it);
    if chosen.is_empty() {
        let cause = format!("no ReplicaSet of namespace {namespace} in the input");
        return Err(Failure::new(Exit::No, cause).hint(source::contents(&others)));
    }
    Ok(chosen)
}
