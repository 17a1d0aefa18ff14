//! How people end holds: by an annotation of a ReplicaSet that changes.

use decree::v1;

/// The annotation of a ReplicaSet. That its value changes resumes holds: of all scopes if the value begins with the word `all`, of its
/// namespace and the ReplicaSets there if it begins with `namespace`, and of the ReplicaSet alone with any other.
pub const RESUME_ANNOTATION: &str = "decree.dev/resume";

/// A person's wish to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The ReplicaSet that says so.
    pub replica_set: v1::ObjectRef,
    /// How far it goes.
    pub extent: Extent,
}

/// Which holds a person resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those of one ReplicaSet.
    ReplicaSet,
    /// Those of one namespace, and of the ReplicaSets in it.
    Namespace,
    /// All.
    All,
}

// === impl Extent ===

impl Extent {
    /// Reads a value of the [annotation](RESUME_ANNOTATION).
    #[must_use]
    pub fn of_annotation(value: &str) -> Self {
        match value.split_whitespace().next() {
            Some("all") => Self::All,
            Some("namespace") => Self::Namespace,
            Some(_) | None => Self::ReplicaSet,
        }
    }

    /// Returns a value of the annotation that differs from those before it, by the text of a time.
    #[must_use]
    pub fn to_annotation(self, time: &str) -> String {
        match self {
            Self::All => format!("all {time}"),
            Self::Namespace => format!("namespace {time}"),
            Self::ReplicaSet => time.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_of_the_annotation_says_how_far_it_goes() {
        for extent in [Extent::ReplicaSet, Extent::Namespace, Extent::All] {
            let value = extent.to_annotation("2026-05-01T12:00:00Z");
            assert_eq!(Extent::of_annotation(&value), extent);
        }
        for value in ["", "true", "everything", "allow", "1 all"] {
            assert_eq!(Extent::of_annotation(value), Extent::ReplicaSet);
        }
    }
}
