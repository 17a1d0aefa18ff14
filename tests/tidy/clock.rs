//! No test is decided by the clock: none fails since the machine is slow.
//!
//! In the code for tests (`tests/`, `tests.rs`, and what is under `#[cfg(test)]`) these are found:
//!
//! - an upper bound of wall time below a minute, or of which that is not known: `took < LIMIT`, `LIMIT > start.elapsed()`,
//!   `if took > LIMIT { panic!() }`, `(LEAST..LIMIT).contains(&took)`, `assert_eq!(took, …)`;
//! - a deadline of less than a minute, where it is met: `Instant::now() < start + LIMIT`;
//! - an attempt that is given less than a minute: `timeout(LIMIT, …)`, `timeout_at`, `recv_timeout`, `wait_timeout_while`;
//! - a certificate or token that is valid for less than a minute: `valid(_, now + LIMIT)`, `claims(_, 30)`.
//!
//! A value is followed through variables, patterns, results of functions and fields of the same file; a limit that is a parameter is
//! looked for at the callers. Not found are lower bounds, since a slow machine keeps them; attempts that are to expire
//! (`is_err()` in an assertion, `expect_err`), or of which nobody asks what came of them; and functions that stop tokio's clock.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax of Rust has many more kinds, and grows"
)]

use crate::clock::finding::Finding;

mod bounds;
mod code;
mod constants;
mod finding;
mod limits;
mod reader;
mod snippets;
mod syntax;
mod values;

/// What is found and is right all the same: file, function, what is found there, and why it decides no test.
const ALLOWED: &[(&str, &str, &str, &str)] = &[
    (
        "tests/fuzz/driver.rs",
        "run",
        "elapsed < time",
        "how long a target is tried, if that is set: it ends a run earlier, and fails none",
    ),
    (
        "tests/grpc/places.rs",
        "server_ends_in_time_beside_a_peer_that_pings_and_never_reads",
        "timeout(from_secs)",
        "writes that stall take for ever; a slow one ends them earlier, and what is asserted holds all the same",
    ),
    (
        "tests/hostile/guard.rs",
        "pair",
        "valid(now)",
        "the cell is that a stream ends when this has expired, so that it waits for that",
    ),
];

#[test]
fn no_test_is_decided_by_the_clock() {
    let sources = code::all();
    assert!(sources.len() > 100, "the search is broken");
    let found = reader::find(&sources);
    let is_allowed = |finding: &Finding, entry: &(&str, &str, &str, &str)| {
        (entry.0, entry.1, entry.2) == (&finding.file, &finding.function, &finding.what)
    };
    let text: Vec<_> = found
        .iter()
        .filter(|finding| !ALLOWED.iter().any(|entry| is_allowed(finding, entry)))
        .map(|it| format!("{}:{}: {}: {}", it.file, it.line, it.function, it.what))
        .collect();
    assert!(text.is_empty(), "bounds of wall time: {text:#?}");
    for entry in ALLOWED {
        let holds = found.iter().any(|finding| is_allowed(finding, entry));
        assert!(holds, "{entry:?} is not found any more");
    }
}
