//! Names of ReplicaSets, and of what has ReplicaSets, as kubectl takes them.

use std::{collections::BTreeSet, str::FromStr};

use clap::Args as Group;
use decree_api::v1;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::{Exit, Failure};

/// The words for ReplicaSets.
pub(crate) const KINDS: [&str; 5] = [
    "replicasets",
    "replicaset",
    "rs",
    "replicaset.apps",
    "replicasets.apps",
];
/// The namespace of a name without one.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A name as written: `NAME`, `KIND/NAME`, or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameArg {
    namespace: Option<String>,
    pub(crate) kind: NameKind,
    name: String,
}

/// What a written name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// A ReplicaSet, or else an owner of ReplicaSets, or else a pod.
    Any,
    ReplicaSet,
    /// An owner of this kind.
    Owner(&'static str),
    Pod,
}

/// In which namespaces a command looks.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct NamespaceArgs {
    /// Only this namespace; for names without a namespace it is `default`, or that of the kubeconfig's context if its cluster is read
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// All namespaces, as without -n
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// The namespace of names without one, if it is not `default`.
    #[arg(skip)]
    pub(crate) of_context: Option<String>,
}

impl Named {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Reads the metadata of an object of Kubernetes.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Self::new(text("namespace"), text("name"))
    }

    /// Formats as `NAMESPACE/NAME`.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The request for the state of the ReplicaSet.
    pub(crate) fn request(&self, cluster: &str) -> v1::GetReplicaSetRequest {
        v1::GetReplicaSetRequest {
            cluster: cluster.to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            shard: String::new(),
        }
    }
}

impl From<v1::ObjectRef> for Named {
    fn from(object: v1::ObjectRef) -> Self {
        Self {
            namespace: object.namespace,
            name: object.name,
        }
    }
}

impl NameKind {
    /// Reads a word before a slash; any other word than a kind is a namespace.
    fn of(word: &str) -> Result<Self, String> {
        let plural = word.split('.').next().unwrap_or_default();
        let other = match plural {
            "deployment" | "deployments" | "deploy" => return Ok(Self::Owner("Deployment")),
            "rollout" | "rollouts" => return Ok(Self::Owner("Rollout")),
            "pod" | "pods" | "po" => return Ok(Self::Pod),
            "cronjob" | "cronjobs" | "cj" => "CronJob",
            "daemonset" | "daemonsets" | "ds" => "DaemonSet",
            "job" | "jobs" => "Job",
            "replicationcontroller" | "replicationcontrollers" | "rc" => "ReplicationController",
            "statefulset" | "statefulsets" | "sts" => "StatefulSet",
            _ if KINDS.contains(&word) => return Ok(Self::ReplicaSet),
            _ => return Ok(Self::Any),
        };
        Err(format!(
            "is a {other}, which has no ReplicaSets, and Decree decides for ReplicaSets only"
        ))
    }
}

impl FromStr for NameArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (before, name) = match text.split_once('/') {
            Some((before, name)) => (Some(before), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || before == Some("") {
            let forms = "NAME, deployment/NAME, rs/NAME, pod/NAME or NAMESPACE/NAME";
            return Err(format!("must be {forms}, such as default/web"));
        }
        let kind = before.map_or(Ok(NameKind::Any), NameKind::of)?;
        let is_kind = kind != NameKind::Any;
        Ok(Self {
            namespace: before.filter(|_| !is_kind).map(str::to_owned),
            kind,
            name: name.to_owned(),
        })
    }
}

impl NamespaceArgs {
    /// One namespace, or the default for names without one.
    pub(crate) const fn of(namespace: Option<String>) -> Self {
        Self {
            namespace,
            all_namespaces: false,
            of_context: None,
        }
    }

    /// The namespace to ask for; empty for all.
    pub(crate) fn filter(&self) -> String {
        self.namespace.clone().unwrap_or_default()
    }

    /// The namespace; without `-n`, that of names without one.
    pub(crate) fn or_default(&self) -> String {
        let namespace = self.namespace.as_ref().or(self.of_context.as_ref());
        namespace.map_or(DEFAULT_NAMESPACE, |it| it).to_owned()
    }

    /// The namespaces to read for these names, or for all ReplicaSets if there are none; `None` stands for all namespaces.
    pub(crate) fn wanted(&self, names: &[NameArg]) -> Result<BTreeSet<Option<String>>, Failure> {
        if names.is_empty() {
            return Ok([self.namespace.clone()].into());
        }
        let named = names.iter().map(|written| self.resolve_one(written));
        named.map(|it| Ok(Some(it?.namespace))).collect()
    }

    /// The name of a ReplicaSet itself, for commands that do not look for its owner.
    pub(crate) fn replica_set(&self, written: &NameArg) -> Result<Named, Failure> {
        match written.kind {
            NameKind::Any | NameKind::ReplicaSet => self.resolve_one(written),
            NameKind::Owner(_) | NameKind::Pod => {
                let cause = format!("{} is no name of a ReplicaSet", written.name);
                let find = "find its ReplicaSet with: decree get rs deployment/NAME";
                Err(Failure::new(Exit::Usage, cause).hint(find))
            }
        }
    }

    /// The namespace and the name of what is written, of any kind.
    pub(crate) fn resolve_one(&self, written: &NameArg) -> Result<Named, Failure> {
        let named = |namespace: &str| Ok(Named::new(namespace, &written.name));
        match (&written.namespace, &self.namespace) {
            (Some(own), Some(flag)) if own != flag => {
                let cause = format!("{own}/{} is not in namespace {flag}", written.name);
                Err(Failure::new(Exit::Usage, cause)
                    .hint("leave out -n, or the namespace before the slash"))
            }
            (Some(own), _) => named(own),
            (None, Some(flag)) => named(flag),
            (None, None) if self.all_namespaces => {
                let cause = format!("{} is a name in one namespace, not in all", written.name);
                Err(Failure::new(Exit::Usage, cause).hint("use -n NAMESPACE instead of -A"))
            }
            (None, None) => named(&self.or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, namespace: Option<&str>) -> Result<String, String> {
        let args = NamespaceArgs::of(namespace.map(str::to_owned));
        let written = text.parse::<NameArg>()?;
        let named = args
            .resolve_one(&written)
            .map_err(|failure| failure.cause)?;
        Ok(named.path())
    }

    #[test]
    fn names_are_taken_as_kubectl_takes_them() {
        for (text, namespace, path) in [
            ("web", None, "default/web"),
            ("web", Some("shop"), "shop/web"),
            ("rs/web", None, "default/web"),
            ("replicaset/web", Some("shop"), "shop/web"),
            ("replicasets.apps/web", None, "default/web"),
            ("deploy/web", None, "default/web"),
            ("deployments.apps/web", Some("shop"), "shop/web"),
            ("pod/web-x2x4z", None, "default/web-x2x4z"),
            ("shop/web", None, "shop/web"),
            ("shop/web", Some("shop"), "shop/web"),
        ] {
            assert_eq!(resolve(text, namespace).as_deref(), Ok(path), "{text}");
        }
    }

    #[test]
    fn names_that_say_nothing_or_two_things_are_refused() {
        for bad in ["", "/web", "default/", "a/b/c", "rs/", "sts/web", "job/web"] {
            assert!(resolve(bad, None).is_err(), "{bad}");
        }
        let both = resolve("shop/web", Some("default"));
        assert_eq!(both, Err("shop/web is not in namespace default".to_owned()));
        let all = NamespaceArgs {
            namespace: None,
            all_namespaces: true,
            of_context: None,
        };
        let written = "web".parse().expect("a name");
        assert!(all.resolve_one(&written).is_err());
    }
}
