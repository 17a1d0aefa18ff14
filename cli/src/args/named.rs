//! How a ReplicaSet is named on the command line.

/// A namespace and a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Reads `NAMESPACE/NAME`.
pub(crate) fn named(text: &str) -> Result<Named, String> {
    match text.split_once('/') {
        Some((namespace, name))
            if !namespace.is_empty() && !name.is_empty() && !name.contains('/') =>
        {
            Ok(Named {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        }
        Some(_) | None => Err("must be NAMESPACE/NAME, such as default/web".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_a_namespace() {
        let expected = Named {
            namespace: "default".into(),
            name: "web".into(),
        };
        assert_eq!(named("default/web"), Ok(expected));
        for bad in ["", "web", "/web", "default/", "a/b/c"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
