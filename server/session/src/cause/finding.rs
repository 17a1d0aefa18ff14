//! A cause under construction: the sentence, and how much it needs a person.

use super::words::short;

/// How much a cause needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Something outside Decree must change.
    Blocked,
    /// It passes; if not, it becomes slow after a while.
    Passing,
    InSync,
    Watched,
}

/// A cause without its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) weight: Weight,
    pub(super) text: String,
    /// The group of ReplicaSets of one session with the same cause.
    pub(super) group: String,
    pub(super) next_command: String,
}

/// The names of a ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

// === impl Finding ===

impl Finding {
    pub(super) fn passing(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Passing,
            text: text.into(),
            group: String::new(),
            next_command: String::new(),
        }
    }

    pub(super) fn blocked(text: impl Into<String>) -> Self {
        Self {
            weight: Weight::Blocked,
            ..Self::passing(text)
        }
    }

    pub(super) fn in_sync() -> Self {
        Self {
            weight: Weight::InSync,
            ..Self::passing("In sync")
        }
    }

    pub(super) fn group(self, group: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            ..self
        }
    }

    pub(super) fn next(self, command: impl Into<String>) -> Self {
        Self {
            next_command: command.into(),
            ..self
        }
    }
}

// === impl Names ===

impl Names<'_> {
    /// Returns the command that shows the ReplicaSet's events.
    pub(super) fn describe(self) -> String {
        let Self { namespace, name } = self;
        format!("kubectl -n {namespace} describe replicaset {name}")
    }

    /// Returns the command that shows the ReplicaSet's fields.
    pub(super) fn show(self) -> String {
        let Self { namespace, name } = self;
        format!("kubectl -n {namespace} get replicaset {name} -o yaml")
    }
}

/// Returns a cause with its message, if there is one.
pub(super) fn said(what: &str, words: &str) -> String {
    match short(words).as_str() {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    }
}
