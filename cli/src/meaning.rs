//! The ReplicaSets that a written name means: a ReplicaSet itself, those of a Deployment, or that of a pod.

use decree::v1;

use crate::{
    args::{NameArg, NameKind, Named, NamespaceArgs, Scope, ScopeArgs},
    exit::{Exit, Failure},
    near, not_found,
    source::Source,
};

/// The kinds of owners that a plain name can mean.
const OWNERS: [&str; 2] = ["Deployment", "Rollout"];
/// The number of characters that Kubernetes adds to the name of a ReplicaSet for a pod, and how much of that name it keeps.
const SUFFIX: usize = 5;
const BASE_MAX: usize = 58;

/// The ReplicaSets that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The ReplicaSets with pods; all if none has pods.
    pub(crate) sets: Vec<Named>,
    /// The kind and the name of their owner, if the name is that of an owner.
    pub(crate) owner: Option<(&'static str, Named)>,
}

/// The ReplicaSets of a server that the flags select. Fails if a name has no meaning. The name of a ReplicaSet always has one, even if it
/// is missing.
pub(crate) async fn scope(args: &ScopeArgs, source: &Source) -> Result<Scope, Failure> {
    let (only, unknown) = source.replica_sets(&args.names, &args.namespace).await?;
    if !unknown.is_empty() {
        let missing = source.missing_among(&only).await?;
        source.check_found(&missing, unknown).await?;
    }
    Ok(Scope::of(only, args.namespace.filter()))
}

impl Source {
    /// The ReplicaSets that names mean, each once, in the written order, and the failures of names without meaning.
    pub(crate) async fn replica_sets(
        &self,
        names: &[NameArg],
        namespaces: &NamespaceArgs,
    ) -> Result<(Vec<Named>, Vec<Failure>), Failure> {
        let (meanings, unknown) = self.meanings(names, namespaces).await?;
        let mut all = Vec::new();
        for named in meanings.into_iter().flat_map(|it| it.sets) {
            if !all.contains(&named) {
                all.push(named);
            }
        }
        Ok((all, unknown))
    }

    /// The meanings of names, and the failures of names without meaning. Fails if no name has a meaning.
    pub(crate) async fn meanings(
        &self,
        names: &[NameArg],
        namespaces: &NamespaceArgs,
    ) -> Result<(Vec<Meaning>, Vec<Failure>), Failure> {
        let (mut meanings, mut unknown) = (Vec::new(), Vec::new());
        for written in names {
            match self.meaning(written, namespaces).await {
                Ok(meaning) => meanings.push(meaning),
                Err(failure) if failure.exit == Exit::No => unknown.push(failure),
                Err(failure) => return Err(failure),
            }
        }
        if meanings.is_empty() {
            not_found::together(std::mem::take(&mut unknown))?;
        }
        Ok((meanings, unknown))
    }

    /// The meaning of a name. A plain name is that of a ReplicaSet, or else of an owner, or else of a pod.
    pub(crate) async fn meaning(
        &self,
        written: &NameArg,
        namespaces: &NamespaceArgs,
    ) -> Result<Meaning, Failure> {
        let named = namespaces.resolve_one(written)?;
        let plain = Meaning {
            sets: vec![named.clone()],
            owner: None,
        };
        match written.kind {
            NameKind::ReplicaSet => Ok(plain),
            NameKind::Owner(kind) => {
                let known = self.known(&named.namespace).await?;
                let found = of_owner(kind, &named, &known);
                found.ok_or_else(|| no_owner(kind, &named, &known))
            }
            NameKind::Pod => {
                let known = self.known(&named.namespace).await?;
                self.of_pod(&named, &known)
            }
            NameKind::Any => {
                // The command itself tells of other failures.
                if !matches!(self.state(&named).await, Ok(None)) {
                    return Ok(plain);
                }
                let known = self.known(&named.namespace).await?;
                let mut kinds = OWNERS.into_iter();
                let owned = kinds.find_map(|kind| of_owner(kind, &named, &known));
                let found = owned.or_else(|| self.of_pod(&named, &known).ok());
                Ok(found.unwrap_or(plain))
            }
        }
    }

    async fn known(&self, namespace: &str) -> Result<Vec<v1::ReplicaSetSummary>, Failure> {
        let scope = Scope::of(Vec::new(), namespace.to_owned());
        Ok(self.list(&scope).await?.replica_sets)
    }

    /// The ReplicaSet of a pod. A server does not list pods, so the name of the pod tells it.
    fn of_pod(&self, pod: &Named, known: &[v1::ReplicaSetSummary]) -> Result<Meaning, Failure> {
        let path = pod.path();
        let failure = |cause: String| Err(Failure::new(Exit::No, cause));
        let mut names = known.iter().filter_map(named);
        let found = match self {
            Self::Server { .. } => names.find(|set| is_base(&set.name, &pod.name)),
            Self::Snapshot { answers, .. } => match answers.pods.get(pod) {
                None => None,
                Some(None) => return failure(format!("pod {path} has no controller")),
                Some(Some((kind, name))) if kind != "ReplicaSet" => {
                    let cause = format!("pod {path} belongs to {kind} {name}, not to a ReplicaSet");
                    return failure(cause);
                }
                Some(Some((_, name))) => names.find(|set| set.name == *name),
            },
        };
        match found {
            Some(set) => Ok(Meaning {
                sets: vec![set],
                owner: None,
            }),
            None => failure(format!("no ReplicaSet of pod {path} found")),
        }
    }
}

fn named(set: &v1::ReplicaSetSummary) -> Option<Named> {
    set.replica_set.clone().map(Named::from)
}

/// The owners of this kind.
fn owners<'a>(
    kind: &'a str,
    known: &'a [v1::ReplicaSetSummary],
) -> impl Iterator<Item = (&'a str, &'a v1::ReplicaSetSummary)> {
    let owned = known
        .iter()
        .filter_map(|set| Some((set.controller.as_ref()?, set)));
    let of_kind = owned.filter(move |(owner, _)| owner.kind == kind);
    of_kind.map(|(owner, set)| (owner.name.as_str(), set))
}

fn of_owner(kind: &'static str, owner: &Named, known: &[v1::ReplicaSetSummary]) -> Option<Meaning> {
    let owned = owners(kind, known).filter(|(name, _)| *name == owner.name);
    let owned: Vec<_> = owned.map(|(_, set)| set).collect();
    let has_pods = |set: &v1::ReplicaSetSummary| set.replicas > 0 || set.active > 0;
    let has_any = owned.iter().any(|set| has_pods(set));
    let sets = owned.iter().filter(|set| has_pods(set) || !has_any);
    let sets = sets.filter_map(|set| named(set)).collect();
    let owner = Some((kind, owner.clone()));
    (!owned.is_empty()).then_some(Meaning { sets, owner })
}

fn no_owner(kind: &str, owner: &Named, known: &[v1::ReplicaSetSummary]) -> Failure {
    let cause = format!("no ReplicaSet of {kind} {} found", owner.path());
    let near = near::nearest(&owner.name, owners(kind, known).map(|(name, _)| name));
    let hint = near.map(|name| format!("did you mean {name}?"));
    Failure::new(Exit::No, cause).hint(hint.unwrap_or_else(|| not_found::LIST.to_owned()))
}

/// Whether Kubernetes can name a pod of a ReplicaSet so.
fn is_base(set: &str, pod: &str) -> bool {
    let base = format!("{set}-");
    let base = &base[..base.floor_char_boundary(BASE_MAX)];
    pod.strip_prefix(base)
        .is_some_and(|suffix| suffix.len() == SUFFIX)
}
