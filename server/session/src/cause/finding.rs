//! A cause under construction: the sentence, and how much it needs a person.

use decree::v1::Severity;

use super::words::short;

/// A cause without its duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// A working one becomes slow after a while.
    pub(super) severity: Severity,
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

impl Finding {
    pub(super) fn new(severity: Severity, text: impl Into<String>) -> Self {
        Self {
            severity,
            text: text.into(),
            group: String::new(),
            next_command: String::new(),
        }
    }

    pub(super) fn passing(text: impl Into<String>) -> Self {
        Self::new(Severity::Working, text)
    }

    pub(super) fn blocked(text: impl Into<String>) -> Self {
        Self::new(Severity::Blocked, text)
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

impl Names<'_> {
    pub(super) fn describe(self) -> String {
        let Self { namespace, name } = self;
        format!("kubectl -n {namespace} describe replicaset {name}")
    }

    pub(super) fn show(self) -> String {
        let Self { namespace, name } = self;
        format!("kubectl -n {namespace} get replicaset {name} -o yaml")
    }

    pub(super) fn explain(self) -> String {
        let Self { namespace, name } = self;
        format!("decree explain {namespace}/{name}")
    }
}

/// Returns a cause with its message, if there is one.
pub(super) fn said(what: &str, words: &str) -> String {
    match short(words).as_str() {
        "" => what.to_owned(),
        words => format!("{what}: {words}"),
    }
}
