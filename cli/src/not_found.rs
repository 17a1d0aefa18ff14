//! The message for a missing ReplicaSet: other places of its name, or similar names.

use tonic::{Code, Response, Status};

use crate::{
    args::Named,
    exit::{Exit, Failure},
    near,
    server::{Server, missing_cluster},
};

/// The maximum number of suggested ReplicaSets.
const NAMED_MAX: usize = 3;
/// The hint if no name is similar to one that a server lacks.
pub(crate) const LIST: &str = "list what exists with: decree get replicasets";

/// The failure for ReplicaSets that are not among the known ones, with the hint `otherwise` if no name is similar.
pub(crate) fn failure(missing: &[Named], known: &[Named], otherwise: &str) -> Failure {
    let paths: Vec<_> = missing.iter().map(Named::path).collect();
    let (noun, hint) = match missing {
        [one] => ("ReplicaSet", hint(one, known)),
        _ => ("ReplicaSets", None),
    };
    let failure = Failure::new(Exit::No, format!("{noun} {} not found", paths.join(", ")));
    failure.hint(hint.unwrap_or_else(|| otherwise.to_owned()))
}

/// Fails with all of these as one, if there are any, with this hint for several.
pub(crate) fn together(
    mut failures: Vec<Failure>,
    hint: impl FnOnce() -> String,
) -> Result<Exit, Failure> {
    match failures.len() {
        0 => Ok(Exit::Done),
        1 => Err(failures.remove(0)),
        _ => {
            let causes: Vec<_> = failures.into_iter().map(|it| it.cause).collect();
            Err(Failure::new(Exit::No, causes.join("; ")).hint(hint()))
        }
    }
}

/// The ReplicaSet that was meant, by its name.
fn hint(missing: &Named, known: &[Named]) -> Option<String> {
    let elsewhere = known.iter().filter(|it| it.name == missing.name);
    let mut namespaces: Vec<_> = elsewhere.map(|it| it.namespace.as_str()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    match namespaces.as_slice() {
        [] => {}
        [one] => return Some(format!("it exists in namespace {one}")),
        more => {
            let more = near::first_of(more, NAMED_MAX);
            return Some(format!("it exists in namespaces {more}"));
        }
    }
    let beside = known.iter().filter(|it| it.namespace == missing.namespace);
    let beside = beside.map(|it| it.name.as_str());
    // The name of a Deployment is the prefix of the names of its ReplicaSets.
    let begun = format!("{}-", missing.name);
    let mut near: Vec<_> = beside.clone().filter(|it| it.starts_with(&begun)).collect();
    near.sort_unstable();
    if near.is_empty() {
        near.extend(near::nearest(&missing.name, beside));
    }
    let near: Vec<_> = near
        .iter()
        .map(|it| format!("{}/{it}", missing.namespace))
        .collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near::first_of(&near, NAMED_MAX)))
}

/// The message of an answer about a ReplicaSet; `None` if the ReplicaSet is missing.
pub(crate) fn found<T>(
    server: &Server,
    answer: Result<Response<T>, Status>,
) -> Result<Option<T>, Failure> {
    match answer {
        Err(status) if status.code() == Code::NotFound && missing_cluster(&status).is_none() => {
            Ok(None)
        }
        answer => server.answer(answer).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Named {
        let (namespace, name) = path.split_once('/').expect("a path");
        Named::new(namespace, name)
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
            ("shop/ap", LIST),
            ("shop/apj", "did you mean shop/api?"),
            ("shop/web", LIST),
        ] {
            let failure = failure(&[named(missing)], &known, LIST);
            assert_eq!(failure.cause, format!("ReplicaSet {missing} not found"));
            assert_eq!(failure.hint.as_deref(), Some(expected), "{missing}");
        }
        let both = failure(&["a/b", "c/d"].map(named), &known, LIST);
        assert_eq!(both.cause, "ReplicaSets a/b, c/d not found");
    }
}
