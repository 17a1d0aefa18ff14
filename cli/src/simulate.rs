//! `decree simulate`: the decisions for a different number of replicas, or after a change of the cluster.

use decree::v1::{self, simulate_cluster_request::Change};

use crate::{
    args::{Named, NamespaceArgs, SimulateArgs},
    decision,
    exit::{Exit, Failure},
    meaning::Meaning,
    server,
    source::Source,
    stale,
    streams::Io,
    table::one_line,
};

mod cluster;

pub(crate) fn run(args: &SimulateArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    if let Some(change) = change(args) {
        return cluster::run(args, change, io);
    }
    if args.names.is_empty() {
        let failure = Failure::new(Exit::Usage, "nothing is assumed");
        return Err(failure.hint("name ReplicaSets, or use --drain NODE or --quota PODS"));
    }
    server::block_on(async {
        let mut namespaces = args.namespace.clone();
        let wanted = |it: &NamespaceArgs| it.wanted(&args.names);
        let source = Source::open(&args.source, &mut namespaces, wanted, io).await?;
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
            decision::write(&args.print, io, decisions)?;
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
    let notice = format!("notice: Kubernetes divides {wanted} replicas of {path}: {parts}");
    writeln!(io.stderr, "{}", one_line(&notice))?;
    if !deployment.is_observed {
        let notice = "notice: its controller has not seen the last change of the Deployment";
        writeln!(io.stderr, "{notice}")?;
    }
    let named = |name: &str| Named::new(&owner.namespace, name);
    let sizes = members.iter().zip(divided);
    let sizes = sizes.map(|(it, to)| (named(&it.name), i32::try_from(to).ok()));
    Ok(sizes.collect())
}

/// The change of the cluster in the flags, if there is one.
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
