//! Names of ReplicaSets, as kubectl takes them.

use std::str::FromStr;

use clap::Args as Group;
use decree::v1;

use crate::exit::{Exit, Failure};

/// The words for ReplicaSets, the only kind that has names here.
pub(crate) const KINDS: [&str; 5] = [
    "replicasets",
    "replicaset",
    "rs",
    "replicaset.apps",
    "replicasets.apps",
];
/// The namespace of a name without one.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A name as written: `NAME`, `rs/NAME`, or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameArg {
    namespace: Option<String>,
    name: String,
}

/// In which namespaces a command looks.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct NamespaceArgs {
    /// Only this namespace; for names without a namespace it is `default`
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// All namespaces, as without -n
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
}

// === impl Named ===

impl Named {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
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

// === impl NameArg ===

impl FromStr for NameArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (before, name) = match text.split_once('/') {
            Some((before, name)) => (Some(before), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || before == Some("") {
            return Err("must be NAME, rs/NAME or NAMESPACE/NAME, such as default/web".to_owned());
        }
        Ok(Self {
            namespace: before
                .filter(|before| !KINDS.contains(before))
                .map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

// === impl NamespaceArgs ===

impl NamespaceArgs {
    /// One namespace, or the default for names without one.
    pub(crate) const fn of(namespace: Option<String>) -> Self {
        Self {
            namespace,
            all_namespaces: false,
        }
    }

    /// The namespace to ask for; empty for all.
    pub(crate) fn filter(&self) -> String {
        self.namespace.clone().unwrap_or_default()
    }

    /// The namespace; `default` without `-n`.
    pub(crate) fn or_default(&self) -> String {
        let namespace = self.namespace.as_deref();
        namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned()
    }

    /// Resolves names to ReplicaSets, each once, in the written order.
    pub(crate) fn resolve(&self, names: &[NameArg]) -> Result<Vec<Named>, Failure> {
        let mut named = Vec::new();
        for written in names {
            let one = self.resolve_one(written)?;
            if !named.contains(&one) {
                named.push(one);
            }
        }
        Ok(named)
    }

    pub(crate) fn resolve_one(&self, written: &NameArg) -> Result<Named, Failure> {
        let NameArg { namespace, name } = written.clone();
        let named = |namespace| Named { namespace, name };
        match (namespace, &self.namespace) {
            (Some(own), Some(flag)) if own != *flag => {
                let cause = format!("{own}/{} is not in namespace {flag}", written.name);
                Err(Failure::new(Exit::Usage, cause)
                    .hint("leave out -n, or the namespace before the slash"))
            }
            (Some(own), _) => Ok(named(own)),
            (None, Some(flag)) => Ok(named(flag.clone())),
            (None, None) if self.all_namespaces => {
                let cause = format!("{} is a name in one namespace, not in all", written.name);
                Err(Failure::new(Exit::Usage, cause).hint("use -n NAMESPACE instead of -A"))
            }
            (None, None) => Ok(named(DEFAULT_NAMESPACE.to_owned())),
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
            ("shop/web", None, "shop/web"),
            ("shop/web", Some("shop"), "shop/web"),
        ] {
            assert_eq!(resolve(text, namespace).as_deref(), Ok(path), "{text}");
        }
    }

    #[test]
    fn names_that_say_nothing_or_two_things_are_refused() {
        for bad in ["", "/web", "default/", "a/b/c", "rs/"] {
            assert!(resolve(bad, None).is_err(), "{bad}");
        }
        let both = resolve("shop/web", Some("default"));
        assert_eq!(both, Err("shop/web is not in namespace default".to_owned()));
        let all = NamespaceArgs {
            namespace: None,
            all_namespaces: true,
        };
        let written = "web".parse().expect("a name");
        assert!(all.resolve_one(&written).is_err());
    }
}
