//! The verdicts of cases.

use std::fmt::Debug;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// The error is the observation that breaks the rule.
pub(super) type Verdict = Result<(), String>;

/// The verdict for a condition. The error names the expected and the found value.
pub(super) fn holds(is_right: bool, expected: &str, found: &impl Debug) -> Verdict {
    is_right.then_some(()).ok_or_else(|| wrong(expected, found))
}

/// Expects this reason in a status, with the code that belongs to it, and these facts.
pub(super) fn expect_reason(status: &Status, reason: &str, facts: &[(&str, &str)]) -> Verdict {
    let code = match reason {
        "AGENT_NOT_READING" | "DEADLINE_EXCEEDED" | "HELLO_TIMEOUT" => Code::DeadlineExceeded,
        "INVALID_FIELD" => Code::InvalidArgument,
        "MESSAGE_TOO_LARGE" => Code::OutOfRange,
        "SEQUENCE_GAP" | "SESSION_SUPERSEDED" | "VERSIONS_WENT_BACK" => Code::Aborted,
        "SERVER_DRAINING" => Code::Unavailable,
        _ => Code::FailedPrecondition,
    };
    let info = status.get_details_error_info();
    let is_right = info.as_ref().is_some_and(|info| {
        let states =
            |(key, value): &(&str, &str)| info.metadata.get(*key).is_some_and(|it| it == value);
        info.reason == reason && info.domain == "decree.dev" && facts.iter().all(states)
    });
    let expected = format!("{code:?} {reason} {facts:?}");
    holds(
        status.code() == code && is_right,
        &expected,
        &(status.code(), info),
    )
}

pub(super) fn wrong(expected: &str, found: &impl Debug) -> String {
    let mut found = format!("{found:?}");
    if let Some((at, _)) = found.char_indices().nth(200) {
        found.truncate(at);
        found.push('…');
    }
    format!("{found} in place of {expected}")
}
