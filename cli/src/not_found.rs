//! The message for a missing ReplicaSet: other places of its name, or similar names.

use tonic::{Code, Status};

use crate::{
    args::Named,
    exit::{Exit, Failure},
    near, pages,
    server::Server,
};

/// The maximum number of suggested ReplicaSets.
const NAMED_MAX: usize = 3;
/// The maximum number of ReplicaSets of a server whose names are compared.
const LOOKED_AT_MAX: usize = 20_000;
/// The hint if no name is similar.
pub(crate) const LIST: &str = "list what exists with: decree get replicasets";

/// The failure for ReplicaSets that are not among the known ones.
pub(crate) fn failure(missing: &[Named], known: &[Named]) -> Failure {
    let paths: Vec<_> = missing.iter().map(Named::path).collect();
    let noun = match paths.as_slice() {
        [_] => "ReplicaSet",
        _ => "ReplicaSets",
    };
    let failure = Failure::new(Exit::No, format!("{noun} {} not found", paths.join(", ")));
    let hint = match missing {
        [one] => hint(one, known),
        _ => None,
    };
    failure.hint(hint.unwrap_or_else(|| LIST.to_owned()))
}

/// The ReplicaSet that was meant, by its name.
pub(crate) fn hint(missing: &Named, known: &[Named]) -> Option<String> {
    let elsewhere = known.iter().filter(|it| it.name == missing.name);
    let mut namespaces: Vec<_> = elsewhere.map(|it| it.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    match namespaces.as_slice() {
        [] => {}
        [one] => return Some(format!("it exists in namespace {one}")),
        more => return Some(format!("it exists in namespaces {}", list(more))),
    }
    let beside = known.iter().filter(|it| it.namespace == missing.namespace);
    let beside: Vec<_> = beside.map(|it| it.name.as_str()).collect();
    // The name of a Deployment is the prefix of the names of its ReplicaSets.
    let begun = format!("{}-", missing.name);
    let mut near: Vec<_> = beside
        .iter()
        .filter(|it| it.starts_with(&begun))
        .copied()
        .collect();
    near.sort_unstable();
    if near.is_empty() {
        near.extend(near::nearest(&missing.name, beside.into_iter()));
    }
    let near: Vec<_> = near
        .iter()
        .map(|it| format!("{}/{it}", missing.namespace))
        .collect();
    let near: Vec<_> = near.iter().map(String::as_str).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", list(&near)))
}

fn list(names: &[&str]) -> String {
    let shown = names.iter().take(NAMED_MAX).copied().collect::<Vec<_>>();
    match names.len() {
        count if count > NAMED_MAX => {
            format!("{} and {} more", shown.join(", "), count - NAMED_MAX)
        }
        _ => shown.join(", "),
    }
}

/// The failure for ReplicaSets that a server does not know. If the server does not list its other ReplicaSets, the failure has no
/// suggestion.
pub(crate) async fn on_server(server: &Server, cluster: &str, missing: &[Named]) -> Failure {
    let mut left = LOOKED_AT_MAX;
    let is_enough = |page: &[decree::v1::ReplicaSetSummary]| {
        left = left.saturating_sub(page.len());
        left == 0
    };
    let listed = pages::replica_sets_until(server, cluster, "", is_enough).await;
    let sets = listed.map_or_else(|_| Vec::new(), |all| all.replica_sets);
    let known = sets.into_iter().filter_map(|set| set.replica_set);
    let known = known.map(|it| Named {
        namespace: it.namespace,
        name: it.name,
    });
    failure(missing, &known.collect::<Vec<_>>())
}

/// The failure for a refused request about this ReplicaSet.
pub(crate) async fn or_refusal(
    server: &Server,
    cluster: &str,
    named: &Named,
    status: &Status,
) -> Failure {
    if status.code() == Code::NotFound && !is_of_cluster(status) {
        on_server(server, cluster, std::slice::from_ref(named)).await
    } else {
        server.failure(status)
    }
}

fn is_of_cluster(status: &Status) -> bool {
    use tonic_types::StatusExt as _;
    let details = status.get_error_details();
    details
        .resource_info()
        .is_some_and(|it| it.resource_type == "Cluster")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Named {
        let (namespace, name) = path.split_once('/').expect("a path");
        Named {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn replica_set_that_was_meant_is_named() {
        let known = [
            "default/web-old",
            "default/web-new",
            "shop/api",
            "pay/api",
            "shop/cart-5d4c7",
        ]
        .map(named);
        for (missing, expected) in [
            ("default/api", "it exists in namespaces pay, shop"),
            ("default/cart-5d4c7", "it exists in namespace shop"),
            ("default/web-odl", "did you mean default/web-old?"),
            (
                "default/web",
                "did you mean default/web-new, default/web-old?",
            ),
            ("shop/web", LIST),
        ] {
            let failure = failure(&[named(missing)], &known);
            assert_eq!(failure.cause, format!("ReplicaSet {missing} not found"));
            assert_eq!(failure.hint.as_deref(), Some(expected), "{missing}");
        }
        let both = failure(&["a/b", "c/d"].map(named), &known);
        assert_eq!(both.cause, "ReplicaSets a/b, c/d not found");
    }
}
