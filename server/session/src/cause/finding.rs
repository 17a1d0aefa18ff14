//! The parts of causes.

use decree_api::v1::{self, Severity};

use super::words::short;

/// The names of a ReplicaSet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// A cause that passes without help. Its group is that of all ReplicaSets of one session with the same cause.
pub(super) fn passing(
    text: impl Into<String>,
    group: impl Into<String>,
    next_command: impl Into<String>,
) -> v1::Cause {
    v1::Cause {
        severity: Severity::Working.into(),
        text: text.into(),
        group: group.into(),
        next_command: next_command.into(),
    }
}

/// A cause that needs a person.
pub(super) fn blocked(
    text: impl Into<String>,
    group: impl Into<String>,
    next_command: impl Into<String>,
) -> v1::Cause {
    v1::Cause {
        severity: Severity::Blocked.into(),
        ..passing(text, group, next_command)
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
