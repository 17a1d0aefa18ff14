//! How people end holds: they change an annotation of a ReplicaSet.

/// The annotation that resumes holds when its value changes. A value that begins with `all` resumes everything, and any
/// other value the ReplicaSet alone.
pub const RESUME_ANNOTATION: &str = "decree.dev/resume";

/// Which holds a person resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The holds of one ReplicaSet.
    ReplicaSet,
    /// All holds.
    All,
}

impl Extent {
    pub(crate) fn of_annotation(value: &str) -> Self {
        match value.split_whitespace().next() {
            Some("all") => Self::All,
            Some(_) | None => Self::ReplicaSet,
        }
    }

    /// Returns a value of the annotation that differs from earlier values by the text of a time.
    pub fn to_annotation(self, time: &str) -> String {
        match self {
            Self::All => format!("all {time}"),
            Self::ReplicaSet => time.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_word_of_the_annotation_says_how_far_it_goes() {
        for extent in [Extent::ReplicaSet, Extent::All] {
            let value = extent.to_annotation("2026-05-01T12:00:00Z");
            assert_eq!(Extent::of_annotation(&value), extent);
        }
        for value in ["", "true", "everything", "allow", "1 all", "namespace 1"] {
            assert_eq!(Extent::of_annotation(value), Extent::ReplicaSet);
        }
    }
}
